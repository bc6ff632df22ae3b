#!/usr/bin/env bash
# Teachers answer with noise what public utterances say -> <out-dir>/text, privacy.json
#
# All queries together cost (epsilon, delta) of the unit of the partition; they are counted in <teachers>/queries.jsonl
# before anything is drawn. Asked again, teachers cost again: nothing is asked twice by itself.
#
# Usage: steps/release_labels.sh [options] <config> <teachers> <private-dir> <public-dir> <out-dir>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
method=gnmax     # gnmax or confident (votes), gaussian or laplace (posteriors), psn (Poisson teachers)
epsilon=8        # of all answers together
delta=1e-5
cap=    # refuse if all that these teachers ever answered would cost more; empty: only say so
system= # name in the tables; empty: that of <out-dir>
start=  # folder of the public model that finds candidates, when the config asks for them
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 5 ]; then
  echo "Usage: $0 [options] <config> <teachers> <private-dir> <public-dir> <out-dir>; see $0 --help" >&2
  exit 2
fi
config=$1
teachers=$2
private=$3
public=$4
out=$5

if already_done "$out.release" config="$config" teachers="$teachers/train/stamp.json" public="$public/wav.scp" \
  method="$method" epsilon="$epsilon" delta="$delta" cap="$cap" ${start:+start="$start/model.pt"}; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out.release/release.log" \
  python3 -m dpanon.cli.release_labels --config "$config" --method "$method" --epsilon "$epsilon" --delta "$delta" \
  ${cap:+--cap "$cap"} ${start:+--start "$start"} --system "${system:-$(basename "$out")}" \
  "$teachers" "$private" "$public" "$out"
mark_done "$out.release" "$out/text" "$out/privacy.json"
