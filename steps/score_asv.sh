#!/usr/bin/env bash
# Speaker verification attack: EER with interval and floor, linkability -> <asv-dir>/<trial-set>_<enrol-set>/metrics.json
#
# The condition follows from which sets have a privacy.json: oo, oa (ignorant attacker), aa (semi-informed).
# Fails when a measured EER is below the floor that the trial set promises.
#
# Usage: steps/score_asv.sh [options] <asv-dir> <enrol-dir> <trial-dir>

set -euo pipefail

cmd=utils/run.py     # utils/run.py here, utils/slurm.py on a cluster
baseline=false       # true: the trials are clear speech
condition=auto       # oo, oa or aa, to have it checked
system=              # name in the tables; empty: that in privacy.json
protocol=speakers    # one model per speaker; pairs: every utterance is a model
num_enrol=3          # enrolment utterances of a speaker, when one set is both
cache=exp/embeddings # directory of embeddings, shared by all steps
out=                 # empty: <asv-dir>/<trial-set>_<enrol-set>
check_floor=true     # false: an EER below its floor is kept, and steps/check_floors.sh fails on it
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <asv-dir> <enrol-dir> <trial-dir>; see $0 --help" >&2
  exit 2
fi
asv=$1
enrol=$2
trial=$3
out=${out:-$asv/$(basename "$trial")_$(basename "$enrol")}

if [ "$baseline" = false ] && [ ! -f "$trial/privacy.json" ]; then
  echo "$0: $trial has no privacy.json; clear speech is scored only with --baseline true" >&2
  exit 2
fi
inputs=(asv="$asv/training.json" enrol="$enrol/wav.scp" trial="$trial/wav.scp")
inputs+=(condition="$condition" system="$system" protocol="$protocol" num_enrol="$num_enrol")
for table in "$trial/trials" "$trial/privacy.jsonl" "$enrol/enrolls"; do
  if [ -f "$table" ]; then
    inputs+=("$(basename "$table")=$table")
  fi
done
if [ -f "$enrol/privacy.jsonl" ]; then
  inputs+=(enrol_privacy="$enrol/privacy.jsonl")
fi
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/score.log" \
  python3 -m dpanon.cli.score_asv --baseline "$baseline" --condition "$condition" --system "$system" \
  --protocol "$protocol" --num-enrol "$num_enrol" --cache "$cache" --check-floor "$check_floor" \
  "$asv" "$enrol" "$trial" "$out"
mark_done "$out" "$out/metrics.json"
