#!/usr/bin/env bash
# Figures of recognisers of words below <exp-dir> -> <results-dir>/<system>.json, errors.svg, RESULTS.md beside it, a table here
#
# Usage: steps/report_commands.sh [options] <exp-dir> <results-dir>

set -euo pipefail

command= # that made the figures, e.g. "$0 $*" of the recipe
started= # seconds since 1970, from `date +%s` at its start; empty: no time is reported
title=   # heading; empty: the name of the recipe
. utils/parse_options.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <exp-dir> <results-dir>; see $0 --help" >&2
  exit 2
fi
python3 -m dpanon.cli.report_commands --command "$command" --started "$started" --title "$title" "$1" "$2"
