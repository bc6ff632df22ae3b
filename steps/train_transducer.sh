#!/usr/bin/env bash
# Transducer: of clear text (--baseline true), or a student of released labels -> <out>/model.pt
#
# A student refuses a set without privacy.json, and any utterance of --private.
#
# Usage: steps/train_transducer.sh [options] <config> <tokens> <data-dir> <out>

set -euo pipefail

cmd=utils/run.py # utils/run.py here, utils/slurm.py on a cluster
baseline=false   # true: train on clear text, without any privacy
start=           # folder of a public model to begin with
private=         # students: the private set, of which they may hear nothing
public=          # students: the set that the labels are about
known=           # public set with clear text that is learned as well
. utils/parse_options.sh
. utils/stamps.sh

if [ $# -ne 4 ]; then
  echo "Usage: $0 [options] <config> <tokens> <data-dir> <out>; see $0 --help" >&2
  exit 2
fi
config=$1
tokens=$2
data=$3
out=$4

inputs=(config="$config" tokens="$tokens" text="$data/text" baseline="$baseline")
options=(--config "$config" --baseline "$baseline" --tokens "$tokens")
if [ -n "$start" ]; then
  inputs+=(start="$start/model.pt")
  options+=(--start "$start")
fi
if [ -n "$private" ]; then
  inputs+=(private="$private/utt2spk")
  options+=(--private "$private")
fi
if [ -n "$public" ]; then
  inputs+=(public="$public/fbank.scp")
  options+=(--public "$public")
fi
if [ -n "$known" ]; then
  inputs+=(known="$known/text")
  options+=(--known "$known")
fi
if already_done "$out" "${inputs[@]}"; then
  exit 0
fi
# shellcheck disable=SC2086  # cmd is a command and its options
$cmd "$out/train.log" python3 -m dpanon.cli.train_transducer "${options[@]}" "$data" "$out"
mark_done "$out" "$out/model.pt"
