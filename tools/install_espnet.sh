#!/usr/bin/env bash
# Modules of ESPnet, for `encoder: espnet` of transducers (egs/aishell/psn): into the virtual environment.
#
# Usage: tools/install_espnet.sh [<folder>]     # a folder of its own, to be put on PYTHONPATH, in place of the environment
#
# Environment: DPANON_VENV  where the virtual environment is (default: .venv of the repository)

set -euo pipefail

root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/utils/parse_options.sh"

venv=${DPANON_VENV:-$root/.venv}
python=$venv/bin/python

if [ ! -x "$python" ]; then
  echo "error: no $python; run tools/setup.sh first, or set DPANON_VENV" >&2
  exit 1
fi
if "$python" -c 'import espnet2.asr.encoder.conformer_encoder' 2>/dev/null; then
  echo "ESPnet is there already"
  exit 0
fi
# Its own requirements want a setuptools that no current torch takes; these are what the encoder imports.
"$python" -m pip install --no-input --no-deps ${1:+--target "$1"} espnet==202511 typeguard==4.6.1
PYTHONPATH=${1:-}:${PYTHONPATH:-} "$python" -c 'import espnet2.asr.encoder.conformer_encoder'
echo "ESPnet's Conformer is there${1:+; export PYTHONPATH=$1}"
