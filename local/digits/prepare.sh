#!/usr/bin/env bash
# Digits -> <data>/{start,private,public,test,test_speakers}
#
# <data>/start is made speech, which anyone may have. The others are of the Free Spoken Digit Dataset in --corpus, or, when
# none is given, made as well, by other speakers. See local/digits/split.py for what is in which.
#
# Usage: local/digits/prepare.sh [--corpus DIR] [--nj N] <made-corpus> <data>

set -euo pipefail

nj=2             # files made at once
corpus=          # folder of the Free Spoken Digit Dataset; empty: made speech alone
start_takes=2    # of a word and made speaker
test_takes=      # of a word and speaker; empty: 5, or 1 of the made ones
public_takes=    # likewise; empty: 10, or 2
unseen_speakers= # for test_speakers; empty: 1, or 4
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <made-corpus> <data>; see $0 --help" >&2
  exit 2
fi
made=$1
data=$2

if [ -n "$corpus" ]; then
  sizes=(--test-takes "${test_takes:-5}" --public-takes "${public_takes:-10}" --unseen-speakers "${unseen_speakers:-1}")
  made_takes=$start_takes # of all made speakers: none of them is tested
  roles="train test"
  whole=$data/fsdd
else
  sizes=(--test-takes "${test_takes:-1}" --public-takes "${public_takes:-2}" --unseen-speakers "${unseen_speakers:-4}")
  made_takes=10
  roles=train
  whole=$data/made
fi
local/digits/make_digits.py --nj "$nj" --takes "$start_takes" --test-takes "$made_takes" "$made"
if already_done "$data/stamps/digits" made="$made/recipe.sha256" corpus="$corpus" sizes="${sizes[*]}"; then
  exit 0
fi
local/digits/prepare.py --roles "$roles" "$made" "$data/start"
if [ -n "$corpus" ]; then
  local/fsdd/prepare.py "$corpus" "$whole"
else
  local/digits/prepare.py --roles test "$made" "$whole"
fi
local/digits/split.py "${sizes[@]}" "$whole" "$data"
mark_done "$data/stamps/digits" "$data/private/wav.scp" "$data/public/wav.scp" "$data/test/wav.scp"
