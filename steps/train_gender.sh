#!/usr/bin/env bash
# Auto-encoder that hides the speaker's sex in embeddings, trained on public speech -> <gender-dir>/gender.safetensors
#
# <data-dir> has xvector.scp and spk2gender. The noise of training is a regulariser and promises nothing.
#
# Usage: steps/train_gender.sh [options] <config> <data-dir> <gender-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
epsilon=         # of the noise in training, inf for none; empty: that of <config>
more=            # further data directories; those without spk2gender train the reconstruction only
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <config> <data-dir> <gender-dir>; see $0 --help" >&2
  exit 2
fi
config=$1
data=$2
out=$3

options=(--config "$config")
if [ -n "$epsilon" ]; then
  options+=(--set epsilon="$epsilon")
fi
inputs=(config="$config" epsilon="$epsilon" xvector="$data/xvector.scp" spk2gender="$data/spk2gender")
for other in $more; do
  inputs+=("$other=$other/xvector.scp")
done
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options; more is a list
$cmd "$out/train.log" python3 -m dpanon.cli.train_gender "${options[@]}" "$data" $more "$out"
mark_done "$out" "$out/gender.safetensors"
