#!/usr/bin/env bash
# LibriSpeech -> <data>/<part> for each part, and the trials of the test parts -> <data>/<part>_{enrolls,trials_f,trials_m}
#
# Usage: local/librispeech/prepare.sh [--partial true] [--parts "..."] [--trials "..."] <corpus> <data>
#
# Names get underscores: test-other -> <data>/test_other. A set that is there, made with the same options, stays.

set -euo pipefail

parts="train-clean-100 test-other" # parts to prepare
trials="test-other"                # those of them to make trials of
enroll=4                           # utterances of a speaker to enrol with; the others are trials
partial=false                      # take a part that is not complete
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <corpus> <data>; see $0 --help" >&2
  exit 2
fi
corpus=$1
data=$2

for part in $parts; do
  set=${part//-/_}
  if ! already_done "$data/stamps/$set" speakers="$corpus/SPEAKERS.TXT" part="$part" partial="$partial"; then
    local/librispeech/prepare.py --partial "$partial" "$corpus" "$part" "$data/$set"
    mark_done "$data/stamps/$set" "$data/$set/wav.scp"
  fi
done
for part in $trials; do
  set=${part//-/_}
  if ! already_done "$data/stamps/${set}_trials" wav="$data/$set/wav.scp" enroll="$enroll"; then
    local/librispeech/make_trials.py --enroll "$enroll" "$data/$set" "$data/${set}_enrolls" "$data/${set}_trials"
    mark_done "$data/stamps/${set}_trials" "$data/${set}_enrolls/wav.scp"
  fi
done
