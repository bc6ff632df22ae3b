#!/usr/bin/env bash
# Syllable or character error rate of a transducer, greedy and by beam search -> <model>/score/<set>/metrics.json
#
# Usage: steps/score_transducer.sh [options] <model> <data-dir> [<data-dir> ...]

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
baseline=false   # true: a model without any privacy
beam=4           # of the second search; 1: greedy only
system=          # name in the tables; empty: that of <model>
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -lt 2 ]; then
  echo "Usage: $0 [options] <model> <data-dir> [<data-dir> ...]; see $0 --help" >&2
  exit 2
fi
model=$1
sets=("${@:2}")
out=$model/score

inputs=(model="$model/stamp.json" baseline="$baseline" beam="$beam" system="$system")
for i in "${!sets[@]}"; do
  inputs+=("text$i=${sets[i]}/text" "fbank$i=${sets[i]}/fbank.scp")
done
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/score.log" \
  python3 -m dpanon.cli.score_transducer --baseline "$baseline" --beam "$beam" \
  --system "${system:-$(basename "$model")}" "$model" "$out" "${sets[@]}"
mark_done "$out" "$out/$(basename "${sets[0]}")/metrics.json"
