#!/usr/bin/env bash
# Recogniser of words by DP-SGD on a private set, noise for (epsilon, delta) of the whole training -> <out>/model.pt, privacy.json
#
# Needs the extra: pip install 'dpanon[opacus]'. Run again after an interruption, it begins anew; nothing of the run that
# was interrupted was kept.
#
# Usage: steps/train_dpsgd.sh [options] <config> <words> <private-dir> <out>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
recogniser=words # or transducer
epsilon=8        # of one utterance, of the whole training
delta=1e-5
start=  # folder of a public model to begin with
system= # name in the tables; empty: that of <out>
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 4 ]; then
  echo "Usage: $0 [options] <config> <words> <private-dir> <out>; see $0 --help" >&2
  exit 2
fi
config=$1
words=$2
data=$3
out=$4

inputs=(config="$config" words="$words" text="$data/text" epsilon="$epsilon" delta="$delta")
if [ -n "$start" ]; then
  inputs+=(start="$start/model.pt")
fi
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/train.log" \
  python3 -m dpanon.cli.train_dpsgd --config "$config" --recogniser "$recogniser" --words "$words" \
  --epsilon "$epsilon" --delta "$delta" ${start:+--start "$start"} --system "${system:-$(basename "$out")}" "$data" "$out"
mark_done "$out" "$out/model.pt" "$out/privacy.json"
