#!/usr/bin/env bash
# LibriSpeech from its makers: archives -> <dir>/LibriSpeech
#
# Usage: local/librispeech/download.sh [--parts "dev-clean test-clean"] [--url URL] <dir>
#
# A part that is unpacked already is left alone; an interrupted download goes on where it stopped. Mirrors:
# https://us.openslr.org/resources/12, https://openslr.elda.org/resources/12

set -euo pipefail

parts="dev-clean test-clean train-clean-100" # names of parts; all of them are in expected.json
url=https://www.openslr.org/resources/12     # where the archives are
keep=false                                   # keep the archives
. utils/parse_options.sh

if [ $# -ne 1 ]; then
  echo "Usage: $0 [options] <dir>; see $0 --help" >&2
  exit 2
fi
dir=$1

mkdir -p "$dir"
for part in $parts; do
  archive=$dir/$part.tar.gz
  if [ -e "$dir/LibriSpeech/$part/.complete" ]; then
    echo "$dir/LibriSpeech/$part: already there"
    continue
  fi
  curl --fail --location --continue-at - --output "$archive" "$url/$part.tar.gz"
  local/librispeech/check_archive.py "$archive"
  tar -xzf "$archive" -C "$dir"
  touch "$dir/LibriSpeech/$part/.complete"
  if [ "$keep" = false ]; then
    rm "$archive"
  fi
done
