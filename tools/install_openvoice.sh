#!/usr/bin/env bash
# The tone colour converter of OpenVoice (MIT), for dpanon anonymize --system voxlet --converter openvoice:
# package, weights and the embeddings of its public voices -> <folder>
#
# Usage: tools/install_openvoice.sh [<folder>]     # default: share/openvoice of the virtual environment
#
# Environment: DPANON_VENV       where the virtual environment is (default: .venv of the repository)
#              DPANON_OPENVOICE  the folder, when it is not the default one; also read by dpanon

set -euo pipefail

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/utils/parse_options.sh"

commit=782971e67a14d91903b26da2ff75e573087b8763 # of github.com/myshell-ai/OpenVoice, which has no releases on PyPI
weights=myshell-ai/OpenVoiceV2                  # of the Hugging Face hub
voices="en-default en-us en-br en-india en-au en-newest es fr jp kr zh"

venv=${DPANON_VENV:-$root/.venv}
folder=${1:-${DPANON_OPENVOICE:-$venv/share/openvoice}}
python=$venv/bin/python

if [ ! -x "$python" ]; then
  echo "error: no $python; run tools/setup.sh first, or set DPANON_VENV" >&2
  exit 1
fi
if [ -e "$folder/checkpoint.pth" ]; then
  echo "$folder is there already"
  exit 0
fi
# Its own requirements pin versions years old; these are what the converter imports.
"$python" -m pip install --no-input cn2an eng_to_ipa huggingface_hub inflect jieba librosa pypinyin unidecode
"$python" -m pip install --no-input --no-deps "git+https://github.com/myshell-ai/OpenVoice@$commit"

parts=$folder.partial
mkdir -p "$parts/voices"
fetch() { # name on the hub, name here
  "$python" -c 'import shutil, sys; from huggingface_hub import hf_hub_download as get
shutil.copyfile(get(sys.argv[1], sys.argv[2]), sys.argv[3])' "$weights" "$1" "$parts/$2"
}
fetch converter/config.json config.json
for voice in $voices; do
  if ! fetch "base_speakers/ses/$voice.pth" "voices/$voice.pth" 2>/dev/null; then
    echo "no voice $voice on the hub: passed over" >&2
  fi
done
fetch converter/checkpoint.pth checkpoint.pth
mv "$parts" "$folder"
echo "$folder: weights and $(find "$folder/voices" -name '*.pth' | wc -l) public voices"
