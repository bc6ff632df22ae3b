#!/usr/bin/env bash
# Speakers of one part and of a test part -> <data>/{train,attack,test}, nobody in two of them
#
# For attacks on embeddings: one set trains models, one attackers, one is attacked; <test-data> joins the last. Utterances
# are cut into pieces: a speaker of one long utterance then shows how a voice varies, has some to enrol with and some to
# be tried.
#
# Usage: local/librispeech/share.sh [options] <data-dir> <test-data-dir> <data>

set -euo pipefail

shares="train=2 attack=1 test=1" # of the speakers of <data-dir>
seconds=3.5                      # of a piece
most=4                           # pieces of an utterance of <data-dir>; of <test-data-dir> the first one
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <data-dir> <test-data-dir> <data>; see $0 --help" >&2
  exit 2
fi
source=$1
test=$2
data=$3

if already_done "$data/stamps/shares" source="$source/wav.scp" shares="$shares" seconds="$seconds" most="$most"; then
  exit 0
fi
# shellcheck disable=SC2086  # shares is a list
utils/share_speakers.py "$source" "$data/whole" $shares
for set in train attack; do
  utils/cut_data.py --seconds "$seconds" --most "$most" "$data/whole_$set" "$data/$set"
done
utils/cut_data.py --seconds "$seconds" --most "$most" "$data/whole_test" "$data/pieces_test"
utils/cut_data.py --seconds "$seconds" --most 1 "$test" "$data/pieces_other" # it has many utterances of a speaker
utils/combine_data.py "$data/test" "$data/pieces_test" "$data/pieces_other"
mark_done "$data/stamps/shares" "$data/train/wav.scp" "$data/attack/wav.scp" "$data/test/wav.scp"
