#!/usr/bin/env bash
# Where jobs run: the one file to edit on a cluster. Both launchers take the same call.
#
#   cpu_cmd="utils/slurm.py --cpus 2 --mem 8G --time 4:00:00"
#   gpu_cmd="utils/slurm.py --gpu 1 --cpus 4 --mem 16G --time 1-00:00:00"
# shellcheck disable=SC2034  # read by run.sh

cpu_cmd=utils/run.py # extraction, release, scores
gpu_cmd=utils/run.py # training
