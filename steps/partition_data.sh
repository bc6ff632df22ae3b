#!/usr/bin/env bash
# Parts of a private set, one for each teacher: disjoint (PATE), or Poisson sub-samples (PSN) -> <teachers>/partition.json
#
# Utterances of one unit stay together; augmented copies (table utt2parent) follow their parent. Checked when written and
# whenever it is read. Poisson coins are drawn once and never again: the file is as private as the speech.
#
# Usage: steps/partition_data.sh [options] <private-dir> <teachers>

set -euo pipefail

number=10      # of teachers
unit=utterance # what is protected: utterance or speaker
rate=          # gamma of Poisson sub-samples; empty: disjoint parts
cap=           # with --rate: most teachers that may hear one speaker; empty: all
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <private-dir> <teachers>; see $0 --help" >&2
  exit 2
fi
data=$1
out=$2

inputs=(utt2spk="$data/utt2spk" number="$number" unit="$unit" rate="${rate/\// of }" cap="$cap")
if [ -f "$data/utt2parent" ]; then
  inputs+=(utt2parent="$data/utt2parent")
fi
if already_done "$out/partition" "${inputs[@]}"; then
  exit 0
fi
python3 -m dpanon.cli.partition_data --teachers "$number" --unit "$unit" ${rate:+--rate "$rate"} ${cap:+--cap "$cap"} \
  "$data" "$out"
mark_done "$out/partition" "$out/partition.json"
