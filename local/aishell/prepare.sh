#!/usr/bin/env bash
# AISHELL-1 -> <data>/{private,dev,test}, <data>/tokens.txt; Common Voice zh-CN -> <data>/{start,public}
#
# <data>/private is AISHELL's train part. <data>/start has its text, <data>/public has none: teachers are asked about it.
#
# Usage: local/aishell/prepare.sh <corpus> <common-voice> <data>

set -euo pipefail

start_part=dev    # of Common Voice, with its text
public_part=train # of Common Voice, without
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <corpus> <common-voice> <data>; see $0 --help" >&2
  exit 2
fi
corpus=$1
voices=$2
data=$3

if already_done "$data/stamps/aishell" corpus="$corpus" voices="$voices" parts="$start_part $public_part"; then
  exit 0
fi
local/aishell/make_tokens.py "$corpus" "$data/tokens.txt"
for pair in private=train dev=dev test=test; do
  local/aishell/prepare.py "$corpus" "${pair#*=}" "$data/${pair%%=*}"
done
for pair in start="$start_part" public="$public_part"; do
  local/commonvoice/prepare.py --language zh-CN "$voices" "${pair#*=}" "$data/cv_${pair%%=*}"
  local/aishell/keep_known.py --text "$([ "${pair%%=*}" = start ] && echo true || echo false)" \
    "$data/tokens.txt" "$data/cv_${pair%%=*}" "$data/${pair%%=*}"
done
mark_done "$data/stamps/aishell" "$data/private/wav.scp" "$data/public/wav.scp"
