#!/usr/bin/env bash
# Figures of the scoring steps -> <results-dir>/<system>.json, RESULTS.md and report.html beside it, a table here
#
# <system> is a name in the metrics.json files below <exp-dir>, several of them in quotes, or "all".
#
# Usage: steps/report.sh [options] <system> <exp-dir> <results-dir>

set -euo pipefail

status=smoke        # smoke, reproduced or paper
command=            # that made the figures, e.g. "$0 $*" of the recipe
started=            # seconds since 1970, from `date +%s` at its start; empty: no time is reported
title=              # heading; empty: the name of the recipe
players=2           # utterances with audio players in report.html; 0: none
original_audio=true # false: leave out the original recordings, e.g. to give report.html away
. utils/parse_options.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <system> <exp-dir> <results-dir>; see $0 --help" >&2
  exit 2
fi
python3 -m dpanon.cli.report --system "$1" --status "$status" --command "$command" --started "$started" \
  --title "$title" --players "$players" --original-audio "$original_audio" "$2" "$3"
