#!/usr/bin/env bash
# Predicted listening quality (DNSMOS) of a set -> <quality-dir>/<set>/metrics.json
#
# Usage: steps/score_quality.sh [options] <data-dir>

set -euo pipefail

cmd=utils/run.py        # utils/run.py here, utils/slurm.py on a cluster
baseline=false          # true: the set is clear speech
system=                 # name in the tables; empty: that in privacy.json
per_speaker=0           # only the first so many utterances of each speaker; 0: all
quality_dir=exp/quality # where the figures go
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 1 ]; then
  echo "Usage: $0 [options] <data-dir>; see $0 --help" >&2
  exit 2
fi
data=$1
out=$quality_dir/$(basename "$data")

inputs=(wav="$data/wav.scp" system="$system" per_speaker="$per_speaker")
if [ -f "$data/privacy.jsonl" ]; then
  inputs+=(privacy="$data/privacy.jsonl")
elif [ "$baseline" = false ]; then
  echo "$0: $data has no privacy.jsonl; clear speech is scored only with --baseline true" >&2
  exit 2
fi
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/score.log" \
  python3 -m dpanon.cli.score_quality --baseline "$baseline" --system "$system" --per-speaker "$per_speaker" "$data" "$out"
mark_done "$out" "$out/metrics.json"
