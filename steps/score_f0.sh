#!/usr/bin/env bash
# Correlation of f0 between a set and its release -> <f0-dir>/<released-set>/metrics.json
#
# Usage: steps/score_f0.sh [options] <original-dir> <released-dir>

set -euo pipefail

cmd=utils/run.py          # utils/run.py here, utils/slurm.py on a cluster
baseline=false            # true: the second set promises nothing
system=                   # name in the tables; empty: that in privacy.json
method=swift              # or yaapt, harvest
f0_dir=exp/f0_correlation # where the figures go
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <original-dir> <released-dir>; see $0 --help" >&2
  exit 2
fi
original=$1
released=$2
out=$f0_dir/$(basename "$released")

inputs=(original="$original/wav.scp" released="$released/wav.scp" system="$system" method="$method")
if [ -f "$released/privacy.jsonl" ]; then
  inputs+=(privacy="$released/privacy.jsonl")
elif [ "$baseline" = false ]; then
  echo "$0: $released has no privacy.jsonl; clear speech is scored only with --baseline true" >&2
  exit 2
fi
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/score.log" \
  python3 -m dpanon.cli.score_f0 --baseline "$baseline" --system "$system" --method "$method" \
  "$original" "$released" "$out"
mark_done "$out" "$out/metrics.json"
