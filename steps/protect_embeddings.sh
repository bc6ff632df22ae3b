#!/usr/bin/env bash
# Release embeddings: <data-dir>/xvector.scp -> <out-data-dir> with xvector.scp, privacy.json and privacy.jsonl
#
# <model-dir> is of steps/train_gender.sh (Laplace noise, --epsilon) or steps/train_speaker.sh (Gaussian, --noise-level).
# A set is never released a second time by itself: done is skipped, other inputs stop (exit code 3).
#
# Usage: steps/protect_embeddings.sh [options] <model-dir> <data-dir> <out-data-dir>

set -euo pipefail

cmd=utils/run.py            # utils/run.py here, utils/slurm.py on a cluster
epsilon=                    # of one embedding; gender models. inf: no noise, no guarantee
noise_level=                # 1 / mu by the rule; speaker models. 0: no noise, no guarantee
sigma_rule=corrected        # sigma = 2 U / mu; or as-published: U / mu
name=                       # in the tables; empty: the kind of the model
keyed_noise=                # a seed: repeatable noise, for tests, not to be released
anonymize_dir=exp/anonymize # stamps and logs
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 3 ]; then
  echo "Usage: $0 [options] <model-dir> <data-dir> <out-data-dir>; see $0 --help" >&2
  exit 2
fi
model=$1
data=$2
out=$3
log_dir=$anonymize_dir/$(basename "$out")

options=(--name "$name")
if [ "$epsilon" = inf ] || [ "$noise_level" = 0 ]; then
  options+=(--system plain)
elif [ -n "$epsilon" ]; then
  options+=(--epsilon "$epsilon")
else
  options+=(--noise-level "$noise_level" --sigma-rule "$sigma_rule")
fi
if [ -n "$keyed_noise" ]; then
  options+=(--keyed-noise "$keyed_noise")
fi
if already_done "$log_dir" xvector="$data/xvector.scp" model="$model" options="${options[*]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$log_dir/protect.log" \
  python3 -m dpanon.cli.protect_embeddings --model "$model" "${options[@]}" "$data" "$out"
mark_done "$log_dir" "$out/xvector.scp" "$out/privacy.json" "$out/privacy.jsonl"
