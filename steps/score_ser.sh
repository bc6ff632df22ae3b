#!/usr/bin/env bash
# Emotions heard in a set (UAR by folds) -> <ser-dir>/<released-set>/metrics.json
#
# Usage: steps/score_ser.sh [options] <original-dir> <released-dir>

set -euo pipefail

cmd=utils/run.py       # utils/run.py here, utils/slurm.py on a cluster
baseline=false         # true: the second set is clear speech
system=                # name in the tables; empty: that in privacy.json
classifier=functionals # or wav2vec2, of a model hub
ser_dir=exp/ser        # where the figures go
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <original-dir> <released-dir>; see $0 --help" >&2
  exit 2
fi
original=$1
released=$2
out=$ser_dir/$(basename "$released")

inputs=(original="$original/wav.scp" emotions="$original/utt2emo" folds="$original/spk2fold")
inputs+=(released="$released/wav.scp" system="$system" classifier="$classifier")
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
  python3 -m dpanon.cli.score_ser --baseline "$baseline" --system "$system" --classifier "$classifier" \
  "$original" "$released" "$out"
mark_done "$out" "$out/metrics.json"
