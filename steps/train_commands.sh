#!/usr/bin/env bash
# Recogniser of words: of clear text (--baseline true), or students of released labels -> <out>
#
# A student refuses a set without privacy.json, and any utterance of --private.
#
# Usage: steps/train_commands.sh [options] <config> <words> <data-dir> <out>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
baseline=false   # true: train on clear text, without any privacy
start=           # folder of a public model to begin with
private=         # students: the private set, of which they may hear nothing
public=          # public speech without text, for more rounds with guessed words; students: also what the labels are about
students=1       # how many; more than one are weighed by weighted majority
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 4 ]; then
  echo "Usage: $0 [options] <config> <words> <data-dir> <out>; see $0 --help" >&2
  exit 2
fi
config=$1
words=$2
data=$3
out=$4

inputs=(config="$config" words="$words" text="$data/text" baseline="$baseline" students="$students")
options=(--config "$config" --baseline "$baseline" --words "$words" --students "$students")
if [ -n "$start" ]; then
  inputs+=(start="$start/model.pt")
  options+=(--start "$start")
fi
if [ -n "$private" ]; then
  inputs+=(private="$private/utt2spk")
  options+=(--private "$private")
fi
if [ -n "$public" ]; then
  inputs+=(public="$public/fbank.scp")
  options+=(--unlabelled "$public")
fi
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/train.log" python3 -m dpanon.cli.train_commands "${options[@]}" "$data" "$out"
mark_done "$out" "$out/config.yaml"
