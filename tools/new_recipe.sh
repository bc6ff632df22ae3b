#!/usr/bin/env bash
# Begin a recipe as a copy of another one: egs/<corpus>/<task>, with its links and its row in tests/recipes.csv
#
# Usage: tools/new_recipe.sh [--from egs/mini/anon] <corpus>/<task>

set -euo pipefail

from=egs/mini/anon # the nearest recipe

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/utils/parse_options.sh"
if [ $# -ne 1 ] || [[ ! $1 =~ ^[a-z][a-z0-9_]*/[a-z][a-z0-9_]*$ ]]; then
  echo "Usage: $0 [options] <corpus>/<task>, two words of a-z, 0-9 and _; see $0 --help" >&2
  exit 2
fi
cd "$root"
new=egs/$1
if [ ! -f "$from/run.sh" ]; then
  _misuse "--from $from: no recipe there"
fi
if [ -e "$new" ]; then
  echo "error: $new exists" >&2
  exit 1
fi
mkdir -p "$new"
cp -RP "$from"/{run.sh,cmd.sh,path.sh,README.md,conf,steps,utils,local} "$new"
echo "$new,," >>tests/recipes.csv
echo "$new: now change run.sh and README.md, and put the parsing of the corpus into local/${1%/*}/; see CONTRIBUTING.md"
