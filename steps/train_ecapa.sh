#!/usr/bin/env bash
# ECAPA-TDNN, an attacker, trained or fine-tuned on released sets -> <asv-dir> for steps/score_asv.sh
#
# Needs SpeechBrain (optional), and with the frontend wavlm a model hub. An interrupted training goes on where it was.
#
# Usage: steps/train_ecapa.sh [options] <config> <data-dir> [<data-dir> ...] <asv-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
baseline=false   # true: train on clear speech
init=            # fine-tune: an <asv-dir> of this step, or a checkpoint of SpeechBrain's ECAPA-TDNN
device=auto      # or cpu, cuda
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
options=()
if [ -n "$init" ]; then
  weights=$init
  if [ -d "$init" ]; then
    weights=$init/ecapa.safetensors
  fi
  inputs+=(init="$weights")
  options=(--init "$init")
fi
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
  python3 -m dpanon.cli.train_ecapa --config "$config" --baseline "$baseline" --device "$device" \
  ${options[@]+"${options[@]}"} "${sets[@]}" "$out"
mark_done "$out" "$out/training.json" "$out/ecapa.safetensors"
