#!/usr/bin/env bash
# f0 auto-encoder, trained with the noise of its epsilon inside, on public speech -> <f0-dir>/model.pt
#
# <data-dir> has f0.scp. An interrupted training goes on where it was.
#
# Usage: steps/train_f0.sh [options] <config> <data-dir> <f0-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
epsilon=         # of one utterance; empty: that of <config>
processes=1      # of torchrun that train together: one for each GPU, or several on CPUs
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <config> <data-dir> <f0-dir>; see $0 --help" >&2
  exit 2
fi
config=$1
data=$2
out=$3

options=(--config "$config")
if [ -n "$epsilon" ]; then
  options+=(--set epsilon="$epsilon")
fi
if already_done "$out" config="$config" epsilon="$epsilon" f0="$data/f0.scp"; then
  exit 0
fi
launch=(python3)
if [ "$processes" -gt 1 ]; then
  launch=(torchrun --standalone --nproc-per-node "$processes")
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/train.log" "${launch[@]}" -m dpanon.cli.train_f0 "${options[@]}" "$data" "$out"
mark_done "$out" "$out/model.pt"
