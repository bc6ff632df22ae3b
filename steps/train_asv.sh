#!/usr/bin/env bash
# Back-ends of the speaker verification attackers, trained on a released set -> <asv-dir>/<extractor>/*.safetensors
#
# Several sets may be given, e.g. several releases of the same training speech.
#
# Usage: steps/train_asv.sh [options] <config> <data-dir> [<data-dir> ...] <asv-dir>

set -euo pipefail

cmd=utils/run.py     # utils/run.py here, utils/slurm.py on a cluster
baseline=false       # true: train on clear speech, the attacker of condition oo
cache=exp/embeddings # directory of embeddings, shared by all steps
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -lt 3 ]; then
  echo "Usage: $0 [options] <config> <data-dir> [<data-dir> ...] <asv-dir>; see $0 --help" >&2
  exit 2
fi
config=$1
sets=("${@:2:$#-2}")
out=${!#}

inputs=(config="$config" baseline="$baseline")
for i in "${!sets[@]}"; do
  inputs+=("wav$i=${sets[i]}/wav.scp" "utt2spk$i=${sets[i]}/utt2spk")
  if [ -f "${sets[i]}/privacy.jsonl" ]; then
    inputs+=("privacy$i=${sets[i]}/privacy.jsonl")
  fi
done
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/train.log" \
  python3 -m dpanon.cli.train_asv --config "$config" --baseline "$baseline" --cache "$cache" "${sets[@]}" "$out"
mark_done "$out" "$out/training.json"
