#!/usr/bin/env bash
# Curves of what steps/score_embeddings.sh measured, with what is provable -> <results-dir>/{gender,speaker}.svg
#
# Usage: steps/plot_embeddings.sh [options] <exp-dir> <results-dir>

set -euo pipefail

. utils/parse_options.sh

if [ $# -ne 2 ]; then
  echo "Usage: $0 [options] <exp-dir> <results-dir>; see $0 --help" >&2
  exit 2
fi
python3 -m dpanon.cli.plot_embeddings "$1" "$2"
