#!/usr/bin/env bash
# 80 log-mel filter banks of every utterance, one vector per 10 ms -> <data-dir>/fbank.scp
#
# Usage: steps/extract_fbank.sh [options] <data-dir>

set -euo pipefail

nj=2             # parallel jobs
cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 1 ]; then
  echo "Usage: $0 [options] <data-dir>; see $0 --help" >&2
  exit 2
fi
data=$1
out=$data/fbank # stamp.json, shards and logs

if already_done "$out" wav="$data/wav.scp"; then
  exit 0
fi
utils/split_data.py "$data" "$nj" "$out/nj$nj"
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd --pick incomplete JOB=1:"$nj" "$out/nj$nj/JOB/log" \
  python3 -m dpanon.cli.extract_fbank "$out/nj$nj/JOB"
utils/merge_tables.py "$data/fbank.scp" "$data/utt2spk" "$out/nj$nj"/*/fbank.scp
mark_done "$out" "$data/fbank.scp"
