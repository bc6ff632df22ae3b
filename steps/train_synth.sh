#!/usr/bin/env bash
# Synthesizer for the content of one bottleneck extractor, trained on public speech -> <synth-dir>/checkpoint.pt
#
# <config> says which (`synthesizer: harmonic`, nsf or hifigan). With `joint: true`, of harmonic only, the extractor goes on
# learning, and its new weights are <synth-dir>/bn.
# <data-dir> has f0.scp and xvector.scp, and content.scp if the extractor wants it. An interrupted training goes on where it was.
#
# Usage: steps/train_synth.sh [options] <config> <data-dir> <bn-dir> <synth-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
noise=none       # epsilon of one frame, the noise in the content; none: system plain
init=            # <synth-dir> of another run to start from
threads=2        # of the processor
processes=1      # of torchrun that train together: one for each GPU, or several on CPUs
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 4 ]; then
  echo "Usage: $0 [options] <config> <data-dir> <bn-dir> <synth-dir>; see $0 --help" >&2
  exit 2
fi
config=$1
data=$2
bn=$3
out=$4

inputs=(config="$config" noise="$noise" bn="$bn/checkpoint.pt")
inputs+=(wav="$data/wav.scp" f0="$data/f0.scp" xvector="$data/xvector.scp")
options=(--config "$config" --noise "$noise" --threads "$threads")
if [ -n "$init" ]; then
  inputs+=(init="$init/checkpoint.pt")
  options+=(--init "$init")
fi
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
launch=(python3)
if [ "$processes" -gt 1 ]; then
  launch=(torchrun --standalone --nproc-per-node "$processes")
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/train.log" "${launch[@]}" -m dpanon.cli.train_synth "${options[@]}" "$data" "$bn" "$out"
mark_done "$out" "$out/checkpoint.pt"
