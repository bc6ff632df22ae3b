#!/usr/bin/env bash
# Teachers, each on its part of a private set, from a public start -> <teachers>/<k>/model.pt
#
# An interrupted training goes on with the teachers that are missing. Nothing in <teachers> may leave.
#
# Usage: steps/train_teachers.sh [options] <config> <start> <private-dir> <teachers>

set -euo pipefail

nj=2             # parallel jobs
cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
recogniser=words # or transducer
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 4 ]; then
  echo "Usage: $0 [options] <config> <start> <private-dir> <teachers>; see $0 --help" >&2
  exit 2
fi
config=$1
start=$2
data=$3
out=$4

if already_done "$out/train" config="$config" start="$start/model.pt" partition="$out/partition.json" \
  fbank="$data/fbank.scp" text="$data/text"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd --pick incomplete JOB=1:"$nj" "$out/train/JOB.log" \
  python3 -m dpanon.cli.train_teachers --config "$config" --recogniser "$recogniser" --job "JOB/$nj" "$start" "$data" "$out"
mark_done "$out/train" "$out/1/model.pt"
