#!/usr/bin/env bash
# Sets of a VoicePrivacy Challenge -> <data>/<set>, from the organisers' folder or, rebuilt, from LibriSpeech
#
# Usage: local/vpc/prepare.sh [--challenge 2026] [--challenge-data DIR] [options] <corpus> <data>
#
# With --challenge-data <corpus> may be ''. A set that is there, made with the same options, stays.

set -euo pipefail

challenge=2026               # or 2024, 2022
challenge_data=              # the organisers' folder data/
allow_pipes=false            # run the commands in their wav.scp
partial=false                # take sets that are not complete
dev_part="dev-clean"         # of <corpus>
test_part="test-clean"       # of <corpus>
train_part="train-clean-360" # of <corpus>
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <corpus> <data>; see $0 --help" >&2
  exit 2
fi
corpus=$1
data=$2

inputs=(challenge="$challenge" partial="$partial")
if [ -n "$challenge_data" ]; then
  inputs+=(enrolls="$challenge_data/libri_dev_enrolls/wav.scp" train="$challenge_data/train-clean-360/wav.scp")
elif [ -n "$corpus" ]; then
  inputs+=(speakers="$corpus/SPEAKERS.TXT" parts="$dev_part $test_part $train_part")
else
  echo "$0: give the organisers' folder with --challenge-data, or LibriSpeech with --corpus" >&2
  exit 2
fi
if already_done "$data/stamps/vpc" "${inputs[@]}"; then
  exit 0
fi
if [ -n "$challenge_data" ]; then
  local/vpc/prepare.py --challenge "$challenge" --allow-pipes "$allow_pipes" --partial "$partial" "$challenge_data" "$data"
else
  local/vpc/make_trials.py --challenge "$challenge" --partial "$partial" --dev-part "$dev_part" --test-part "$test_part" \
    --train-part "$train_part" "$corpus" "$data"
fi
mark_done "$data/stamps/vpc" "$data/libri_dev_enrolls/wav.scp" "$data/train-clean-360/wav.scp"
