#!/usr/bin/env bash
# De-identification and gain of voice distinctiveness (DeID, G_VD) -> <voices-dir>/<released-set>/metrics.json
#
# <asv-dir> is that of an attacker trained on original speech.
#
# Usage: steps/score_voices.sh [options] <asv-dir> <original-dir> <released-dir>

set -euo pipefail

cmd=utils/run.py      # utils/run.py here, utils/slurm.py on a cluster
baseline=false        # true: the second set is clear speech
system=               # name in the tables; empty: that in privacy.json
extractor=campplus    # or ge2e, ecapa
cache=exp/embeddings  # directory of embeddings, shared by all steps
voices_dir=exp/voices # where the figures go
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <asv-dir> <original-dir> <released-dir>; see $0 --help" >&2
  exit 2
fi
asv=$1
original=$2
released=$3
out=$voices_dir/$(basename "$released")

inputs=(asv="$asv/training.json" original="$original/wav.scp" released="$released/wav.scp")
inputs+=(system="$system" extractor="$extractor")
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
  python3 -m dpanon.cli.score_voices --baseline "$baseline" --system "$system" --extractor "$extractor" --cache "$cache" \
  "$asv" "$original" "$released" "$out"
mark_done "$out" "$out/metrics.json"
