#!/usr/bin/env bash
# Data directories as one, with the tables that all of them have -> <out-dir>
#
# One source alone gives a second set of the same utterances, e.g. to release training speech twice.
#
# Usage: steps/combine_data.sh [options] <out-dir> <data-dir> [<data-dir> ...]

set -euo pipefail

. utils/parse_options.sh
. utils/stamps.sh

if [ $# -lt 2 ]; then
  echo "Usage: $0 [options] <out-dir> <data-dir> [<data-dir> ...]; see $0 --help" >&2
  exit 2
fi
out=$1
shift
stamp=$(dirname "$out")/stamps/$(basename "$out") # not in <out-dir>, which is made at once

inputs=() # tables of arrays are taken over, too, but their paths change with --nj
for data in "$@"; do
  for table in wav.scp utt2spk utt2num_samples text spk2gender trials enrolls; do
    if [ -f "$data/$table" ]; then
      inputs+=("$data:$table=$data/$table")
    fi
  done
done
if already_done "$stamp" "${inputs[@]}"; then
  exit 0
fi
utils/combine_data.py "$out" "$@"
mark_done "$stamp" "$out/wav.scp"
