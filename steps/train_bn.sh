#!/usr/bin/env bash
# Bottleneck extractor, trained with the noise of its epsilon inside, on public speech -> <bn-dir>/checkpoint.pt
#
# <data-dir> has the tables of what <config> learns from: content.scp, f0.scp and xvector.scp if it says nothing else, text
# with a ctc_weight. An interrupted training goes on where it was.
#
# Usage: steps/train_bn.sh [options] <config> <data-dir> <bn-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
epsilon=         # of one frame, inf: no noise; empty: that of <config>
init=            # <bn-dir> of another run to start from, e.g. at a larger epsilon
match=           # <bn-dir> whose content this one has to give, so that one synthesizer serves both
threads=2        # of the processor
processes=1      # of torchrun that train together: one for each GPU, or several on CPUs
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <config> <data-dir> <bn-dir>; see $0 --help" >&2
  exit 2
fi
config=$1
data=$2
out=$3

inputs=(config="$config" epsilon="$epsilon" wav="$data/wav.scp")
options=(--config "$config" --threads "$threads")
for table in content f0 xvector phones; do
  [ ! -e "$data/$table.scp" ] || inputs+=("$table=$data/$table.scp")
done
if grep -q '^ctc_weight' "$config"; then
  inputs+=(text="$data/text")
fi
if [ -n "$epsilon" ]; then
  options+=(--set epsilon="$epsilon")
fi
if [ -n "$init" ]; then
  inputs+=(init="$init/checkpoint.pt")
  options+=(--init "$init")
fi
if [ -n "$match" ]; then
  inputs+=(match="$match/checkpoint.pt")
  options+=(--match "$match")
fi
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
launch=(python3)
if [ "$processes" -gt 1 ]; then
  launch=(torchrun --standalone --nproc-per-node "$processes")
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/train.log" "${launch[@]}" -m dpanon.cli.train_bn "${options[@]}" "$data" "$out"
mark_done "$out" "$out/checkpoint.pt"
