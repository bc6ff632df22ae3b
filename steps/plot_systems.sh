#!/usr/bin/env bash
# Systems side by side: WER, EER, correlation of f0 and what they cost -> <results-dir>/systems.svg
#
# <results-dir> has what steps/report.sh made of each system, in this run or an earlier one.
#
# Usage: steps/plot_systems.sh <results-dir>

set -euo pipefail

. utils/parse_options.sh

if [ $# -ne 1 ]; then
  echo "Usage: $0 <results-dir>; see $0 --help" >&2
  exit 2
fi
python3 -m dpanon.cli.plot_systems "$1"
