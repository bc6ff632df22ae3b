#!/usr/bin/env bash
# x-vector of every utterance -> <data-dir>/xvector.scp
#
# Usage: steps/extract_xvector.sh [options] <data-dir>

set -euo pipefail

nj=2               # parallel jobs
cmd=utils/run.py   # utils/run.py here, utils/slurm.py on a cluster
extractor=campplus # or ge2e, ecapa; the shipped models know campplus
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 1 ]; then
  echo "Usage: $0 [options] <data-dir>; see $0 --help" >&2
  exit 2
fi
data=$1
out=$data/xvector # stamp.json, shards and logs

if already_done "$out" wav="$data/wav.scp" extractor="$extractor"; then
  exit 0
fi
utils/split_data.py "$data" "$nj" "$out/nj$nj"
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd --pick incomplete JOB=1:"$nj" "$out/nj$nj/JOB/log" \
  python3 -m dpanon.cli.extract_xvector --extractor "$extractor" "$out/nj$nj/JOB"
utils/merge_tables.py "$data/xvector.scp" "$data/utt2spk" "$out/nj$nj"/*/xvector.scp
mark_done "$out" "$data/xvector.scp"
