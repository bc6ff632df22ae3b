#!/usr/bin/env bash
# Mandarin -> <data>/{start,private,public,dev,test,test_speakers}; commands have no dev
#
# <data>/start is gcin-voice, public. The others are of <corpus>: words with a manifest.tsv (see prepare.py; test_speakers
# is then the speaker --unseen), or commands (see local/mandarin_commands/prepare.py), split by takes and speakers.
#
# Usage: local/mandarin/prepare.sh [--syllables DIR] [--speaker NAME] [--unseen NAME] <corpus> <data>

set -euo pipefail

syllables=/usr/share/gcin-voice/ogg # of Debian's gcin-voice
speaker=YueTan                      # of the manifest, whose words are private
unseen=ChenWang                     # of the manifest, for test_speakers
test_takes=2                        # commands: of a word and speaker
public_takes=2                      # likewise
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <corpus> <data>; see $0 --help" >&2
  exit 2
fi
corpus=$1
data=$2

if already_done "$data/stamps/mandarin" corpus="$corpus" syllables="$syllables" speakers="$speaker $unseen"; then
  exit 0
fi
local/gcin_voice/prepare.py "$syllables" "$data/start"
if [ -f "$corpus/manifest.tsv" ]; then
  local/mandarin/prepare.py "$corpus" "$speaker" "$data/words"
  local/mandarin/split.py "$data/words" "$data"
  local/mandarin/prepare.py "$corpus" "$unseen" "$data/test_speakers"
else
  local/mandarin_commands/prepare.py "$corpus" "$data/commands"
  local/digits/split.py --test-takes "$test_takes" --public-takes "$public_takes" "$data/commands" "$data"
fi
mark_done "$data/stamps/mandarin" "$data/private/wav.scp" "$data/public/wav.scp" "$data/test/wav.scp"
