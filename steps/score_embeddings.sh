#!/usr/bin/env bash
# Attacks on released embeddings: EER by speaker models, AUC of the sex -> <out-dir>/metrics.json, <out-dir>/{oo,oa,aa}
#
# <train-dir> trains the attackers who know nothing of the protection, <released-train-dir> those who run it themselves.
# Fails when what is measured is beyond what the released set promises.
#
# Usage: steps/score_embeddings.sh [options] <train-dir> <released-train-dir> <test-dir> <released-test-dir> <out-dir>

set -euo pipefail

cmd=utils/run.py        # utils/run.py here, utils/slurm.py on a cluster
config=conf/attack.yaml # of the attackers
baseline=false          # true: the test set is clean
gender=true             # attack the sex, too
facts=                  # KEY=NUMBER ... kept with the figures, for curves
system=                 # name in the tables; empty: that in privacy.json
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 5 ]; then
  echo "Usage: $0 [options] <train> <released-train> <test> <released-test> <out-dir>; see $0 --help" >&2
  exit 2
fi
train=$1
released_train=$2
test=$3
released=$4
out=$5

if [ "$baseline" = false ] && [ ! -f "$released/privacy.json" ]; then
  echo "$0: $released has no privacy.json; clean embeddings are scored only with --baseline true" >&2
  exit 2
fi
inputs=(config="$config" train="$train/xvector.scp" test="$test/xvector.scp" gender="$gender" facts="$facts")
inputs+=(released_train="$released_train/xvector.ark" released="$released/xvector.ark" system="$system")
if [ "$baseline" = true ]; then
  inputs=(config="$config" train="$train/xvector.scp" test="$test/xvector.scp" gender="$gender" system="$system")
fi
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/score.log" \
  python3 -m dpanon.cli.score_embeddings --config "$config" --baseline "$baseline" --gender "$gender" \
  --facts "$facts" --system "$system" "$train" "$released_train" "$test" "$released" "$out"
mark_done "$out"
