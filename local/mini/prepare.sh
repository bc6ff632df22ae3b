#!/usr/bin/env bash
# A made corpus (flite and espeak-ng voices, changed per speaker) -> <data>/{train,test}
#
# Usage: local/mini/prepare.sh [--nj N] [--speakers N] <corpus> <data>
#
# <data>/test holds enrolls and trials; <data>/test_{enrolls,trials_f,trials_m} the same in the layout of VoicePrivacy.

set -euo pipefail

nj=2      # files made at once
enroll=4  # utterances of a speaker to enrol with; the others are trials
speakers= # only the first so many of each role and sex, for a quick try
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <corpus> <data>; see $0 --help" >&2
  exit 2
fi
corpus=$1
data=$2

local/mini/make_corpus.py --nj "$nj" ${speakers:+--speakers "$speakers"} "$corpus"
if ! already_done "$data/stamps/mini" corpus="$corpus/recipe.sha256" enroll="$enroll"; then
  local/mini/prepare.py --enroll "$enroll" "$corpus" "$data"
  mark_done "$data/stamps/mini" "$data/train/wav.scp" "$data/test/wav.scp"
fi
