#!/usr/bin/env bash
# Variational auto-encoder of speaker embeddings, trained on public speech -> <speaker-dir>/speaker.safetensors
#
# <data-dir> has xvector.scp; no labels are needed.
#
# Usage: steps/train_speaker.sh [options] <config> <data-dir> <speaker-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
more=            # further data directories
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <config> <data-dir> <speaker-dir>; see $0 --help" >&2
  exit 2
fi
config=$1
data=$2
out=$3

inputs=(config="$config" xvector="$data/xvector.scp")
for other in $more; do
  inputs+=("$other=$other/xvector.scp")
done
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options; more is a list
$cmd "$out/train.log" python3 -m dpanon.cli.train_speaker --config "$config" "$data" $more "$out"
mark_done "$out" "$out/speaker.safetensors"
