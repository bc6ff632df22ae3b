#!/usr/bin/env bash
# What the teachers hear in public training speech -> <data-dir>/content.scp (Whisper), <data-dir>/phones.scp (hama)
#
# Usage: steps/extract_content.sh [options] <data-dir>

set -euo pipefail

nj=2             # parallel jobs
cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
teachers=whisper # or whisper,hama (pip install hama), for a bn.yaml with phone_weight > 0
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 1 ]; then
  echo "Usage: $0 [options] <data-dir>; see $0 --help" >&2
  exit 2
fi
data=$1
out=$data/content # stamp.json, shards and logs

case $teachers in
  whisper) tables=content ;;
  hama) tables=phones ;;
  whisper,hama) tables="content phones" ;;
  *) _misuse "--teachers takes whisper, hama or whisper,hama, not '$teachers'" ;;
esac
if already_done "$out" wav="$data/wav.scp" teachers="$teachers"; then
  exit 0
fi
utils/split_data.py "$data" "$nj" "$out/nj$nj"
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd --pick incomplete JOB=1:"$nj" "$out/nj$nj/JOB/log" \
  python3 -m dpanon.cli.extract_content --teachers "$teachers" "$out/nj$nj/JOB"
made=()
for table in $tables; do
  utils/merge_tables.py "$data/$table.scp" "$data/utt2spk" "$out/nj$nj"/*/"$table.scp"
  made+=("$data/$table.scp")
done
mark_done "$out" "${made[@]}"
