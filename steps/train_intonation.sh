#!/usr/bin/env bash
# Intonation network of one bottleneck extractor: content, through its noise, -> contours of f0 -> <intonation-dir>/model.pt
#
# What it says of released content is post-processing. <data-dir> has f0.scp, and content.scp if the extractor wants it.
# An interrupted training goes on where it was.
#
# Usage: steps/train_intonation.sh [options] <config> <data-dir> <bn-dir> <intonation-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
noise=none       # epsilon of one frame, the noise in the content; none: system plain
threads=1        # of the processor
processes=1      # of torchrun that train together: one for each GPU, or several on CPUs
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 4 ]; then
  echo "Usage: $0 [options] <config> <data-dir> <bn-dir> <intonation-dir>; see $0 --help" >&2
  exit 2
fi
config=$1
data=$2
bn=$3
out=$4

if already_done "$out" config="$config" noise="$noise" bn="$bn/checkpoint.pt" f0="$data/f0.scp" wav="$data/wav.scp"; then
  exit 0
fi
launch=(python3)
if [ "$processes" -gt 1 ]; then
  launch=(torchrun --standalone --nproc-per-node "$processes")
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/train.log" "${launch[@]}" -m dpanon.cli.train_intonation --config "$config" --noise "$noise" \
  --threads "$threads" "$data" "$bn" "$out"
mark_done "$out" "$out/model.pt"
