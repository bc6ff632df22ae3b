#!/usr/bin/env bash
# Membership inference against a recogniser of words -> <model>/membership/metrics.json
#
# <others-dir> has utterances of the same speakers that nothing was trained on. Fails below the floor of the guarantee.
#
# Usage: steps/score_membership.sh [options] <model> <private-dir> <others-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
baseline=false   # true: a model without any privacy
system=          # name in the tables; empty: that of <model>
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <model> <private-dir> <others-dir>; see $0 --help" >&2
  exit 2
fi
model=$1
out=$model/membership

if already_done "$out" model="$model/stamp.json" private="$2/text" others="$3/text" baseline="$baseline" \
  system="$system"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/score.log" \
  python3 -m dpanon.cli.score_membership --baseline "$baseline" --system "${system:-$(basename "$model")}" \
  "$model" "$2" "$3" "$out"
mark_done "$out" "$out/metrics.json"
