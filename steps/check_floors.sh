#!/usr/bin/env bash
# Fail when an EER in <score-dir> is under the floor that its set promises, and say which assumption broke
#
# For recipes that measure a whole sweep first: steps/score_asv.sh --check-floor false keeps what this step fails on.
#
# Usage: steps/check_floors.sh <score-dir> [<score-dir> ...]

set -euo pipefail

. utils/parse_options.sh

if [ $# -lt 1 ]; then
  echo "Usage: $0 <score-dir> [<score-dir> ...]; see $0 --help" >&2
  exit 2
fi
python3 -m dpanon.cli.check_floors "$@"
