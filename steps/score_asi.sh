#!/usr/bin/env bash
# Speaker identification from released features at several epsilons (P_ASI) -> <asi-dir>/<feature>_eps<epsilon>/metrics.json
#
# The attacker releases the speech of <data-dir>, trains on 80 % of each speaker and attacks 10 %. Features: bn, f0, and
# fbank, which is no release and shows what the attacker can do. content.scp and f0.scp, if there, are taken.
#
# Usage: steps/score_asi.sh [options] <config> <data-dir> <asi-dir>

set -euo pipefail

cmd=utils/run.py        # utils/run.py here, utils/slurm.py on a cluster
features="fbank bn f0"  # what is attacked
epsilons="inf 100 10 1" # of one frame (bn), of one utterance (f0); inf: no noise
releases=1              # of every utterance, each with new noise
models=                 # directory of weights; empty: the shipped ones
keyed_noise=            # seed of repeatable noise, for tests
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <config> <data-dir> <asi-dir>; see $0 --help" >&2
  exit 2
fi
config=$1
data=$2
asi=$3

inputs=(config="$config" wav="$data/wav.scp" utt2spk="$data/utt2spk" releases="$releases" models="$models")
inputs+=(keyed_noise="$keyed_noise")
for feature in $features; do
  for epsilon in $epsilons; do
    out=$asi/${feature}_eps$epsilon
    if { [ "$feature" = fbank ] && [ "$epsilon" != inf ]; } || already_done "$out" "${inputs[@]}"; then
      continue
    fi
    # shellcheck disable=SC2086  # cmd is a command and its options
    $cmd "$out/attack.log" \
      python3 -m dpanon.cli.score_asi --config "$config" --feature "$feature" --epsilon "$epsilon" \
      --releases "$releases" --models "$models" --keyed-noise "$keyed_noise" "$data" "$out"
    mark_done "$out" "$out/metrics.json"
  done
done
