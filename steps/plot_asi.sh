#!/usr/bin/env bash
# P_ASI against epsilon, as steps/score_asi.sh measured it -> <results-dir>/identification.svg, curves/identification.json
#
# Doubts about an attacker (no speaker told without noise, training cut off, ...) are printed and kept.
#
# Usage: steps/plot_asi.sh [options] <asi-dir> <results-dir>

set -euo pipefail

command= # that made the figures
. utils/parse_options.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <asi-dir> <results-dir>; see $0 --help" >&2
  exit 2
fi
python3 -m dpanon.cli.plot_asi --command "$command" "$1" "$2"
