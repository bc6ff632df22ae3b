#!/usr/bin/env bash
# VoxCeleb -> <data>/train (vox2/dev), <data>/attack (vox1/dev), <data>/test (vox1/test): the sets of paper C
#
# Usage: local/voxceleb/prepare.sh [--partial true] <corpus> <data>

set -euo pipefail

partial=false # take parts that are not complete
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <corpus> <data>; see $0 --help" >&2
  exit 2
fi
corpus=$1
data=$2

for pair in train=vox2/dev attack=vox1/dev test=vox1/test; do
  set=${pair%%=*}
  part=${pair#*=}
  if ! already_done "$data/stamps/$set" meta="$corpus/${part%%/*}_meta.csv" partial="$partial"; then
    local/voxceleb/prepare.py --partial "$partial" "$corpus" "$part" "$data/$set"
    mark_done "$data/stamps/$set" "$data/$set/wav.scp"
  fi
done
