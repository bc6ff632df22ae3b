#!/usr/bin/env bash
# Stages of a recipe: `if at_stage 4 "release: data/<set> -> data/<set>_dp"; then ...; fi`
#
# To be sourced by run.sh after parse_options.sh, with stage, stop_stage and list set. With `--list true`
# every at_stage prints its line and does nothing. A failure ends with the command that resumes.
# shellcheck disable=SC2154  # stage, stop_stage, list are the recipe's; _given is parse_options.sh's

if [ $# -gt 0 ]; then
  _misuse "unexpected argument '$1': a recipe takes options only"
fi
if [ "$stage" -gt "$stop_stage" ]; then
  _misuse "--stage $stage is after --stop-stage $stop_stage"
fi

current_stage=
_stage_began=0

log() {
  printf '%(%H:%M:%S)T  %s\n' -1 "$*"
}

_end_stage() {
  if [ -n "$current_stage" ]; then
    log "stage $current_stage took $((SECONDS - _stage_began)) s"
  fi
}

at_stage() { # number, what it does
  if [ "$list" = true ]; then
    printf '%3d  %s\n' "$1" "$2"
    return 1
  fi
  if [ "$1" -lt "$stage" ] || [ "$1" -gt "$stop_stage" ]; then
    return 1
  fi
  _end_stage
  current_stage=$1
  _stage_began=$SECONDS
  log "stage $1: $2"
}

# A command that gives the same options again, but begins at the stage that failed.
_resume_line() {
  local arguments=() skip=false argument
  for argument in ${_given[@]+"${_given[@]}"}; do
    if [ "$skip" = true ]; then
      skip=false
      continue
    fi
    case $argument in
      --stage) skip=true ;;
      --stage=*) ;;
      *) arguments+=("$argument") ;;
    esac
  done
  printf '%q ' "$0" ${arguments[@]+"${arguments[@]}"}
  echo "--stage $current_stage"
}

_at_exit() {
  local status=$?
  if [ "$status" -ne 0 ] && [ -n "$current_stage" ]; then
    log "stage $current_stage failed (exit code $status); mend it, then: $(_resume_line)" >&2
  elif [ "$status" -eq 0 ] && [ "$list" != true ]; then
    if [ -n "$current_stage" ]; then
      _end_stage
    else
      log "no stage from $stage to $stop_stage in this recipe; see $0 --list true" >&2
    fi
  fi
}
trap _at_exit EXIT
