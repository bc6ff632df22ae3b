#!/usr/bin/env bash
# Speaker identification from released features at several epsilons (P_ASI) -> <asi-dir>/<feature>_eps<epsilon>/metrics.json
#
# The attacker releases the speech of <data-dir>, trains on 80 % of each speaker and attacks 10 %. Features: bn, f0,
# fbank, which is no release and shows what the attacker can do, and bn_tdnnf: the extractor of paper A, one for each
# epsilon, <extractor>_eps<epsilon>; --bn-config trains them on <data-dir> first. content.scp and f0.scp, if there, are taken.
#
# Usage: steps/score_asi.sh [options] <config> <data-dir> <asi-dir>

set -euo pipefail

cmd=utils/run.py        # utils/run.py here, utils/slurm.py on a cluster
features="fbank bn f0"  # what is attacked
epsilons="inf 100 10 1" # of one frame (bn, bn_tdnnf), of one utterance (f0); inf: no noise
releases=1              # of every utterance, each with new noise
models=                 # directory of weights; empty: the shipped ones
bn_config=              # configuration of the extractors of bn_tdnnf, which is then attacked, too
extractor=exp/bn_tdnnf  # where they are, less _eps<epsilon>
nj=2                    # parallel jobs of what they learn from
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

if [ -n "$bn_config" ]; then
  case " $features " in *" bn_tdnnf "*) ;; *) features+=" bn_tdnnf" ;; esac
  if grep -q '^phone_weight: *[0-9.]*[1-9]' "$bn_config" && [ ! -e "$data/phones.scp" ]; then
    steps/extract_content.sh --nj "$nj" --cmd "$cmd" --teachers hama "$data"
  fi
  for epsilon in $epsilons; do
    steps/train_bn.sh --cmd "$cmd" --epsilon "$epsilon" "$bn_config" "$data" "${extractor}_eps$epsilon"
  done
fi
inputs=(config="$config" wav="$data/wav.scp" utt2spk="$data/utt2spk" releases="$releases" models="$models")
inputs+=(keyed_noise="$keyed_noise")
for feature in $features; do
  for epsilon in $epsilons; do
    out=$asi/${feature}_eps$epsilon
    of=() learned=() # of bn_tdnnf
    if [ "$feature" = bn_tdnnf ]; then
      of=(--extractor "${extractor}_eps$epsilon") learned=(extractor="${extractor}_eps$epsilon/checkpoint.pt")
    fi
    if { [ "$feature" = fbank ] && [ "$epsilon" != inf ]; } || already_done "$out" "${inputs[@]}" "${learned[@]}"; then
      continue
    fi
    # shellcheck disable=SC2086  # cmd is a command and its options
    $cmd "$out/attack.log" \
      python3 -m dpanon.cli.score_asi --config "$config" --feature "$feature" --epsilon "$epsilon" \
      --releases "$releases" --models "$models" --keyed-noise "$keyed_noise" "${of[@]}" "$data" "$out"
    mark_done "$out" "$out/metrics.json"
  done
done
