#!/usr/bin/env bash
# f0 of every utterance, one value per 10 ms -> <data-dir>/f0.scp
#
# Usage: steps/extract_f0.sh [options] <data-dir>

set -euo pipefail

nj=2             # parallel jobs
cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
method=swift     # or yaapt, harvest
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 1 ]; then
  echo "Usage: $0 [options] <data-dir>; see $0 --help" >&2
  exit 2
fi
data=$1
out=$data/f0 # stamp.json, shards and logs

if already_done "$out" wav="$data/wav.scp" method="$method"; then
  exit 0
fi
utils/split_data.py "$data" "$nj" "$out/nj$nj"
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd --pick incomplete JOB=1:"$nj" "$out/nj$nj/JOB/log" \
  python3 -m dpanon.cli.extract_f0 --method "$method" "$out/nj$nj/JOB"
utils/merge_tables.py "$data/f0.scp" "$data/utt2spk" "$out/nj$nj"/*/f0.scp
mark_done "$out" "$data/f0.scp"
