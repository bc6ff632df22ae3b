#!/usr/bin/env bash
# Put Python and shell into the project's style. Changes files in place.
#
# Usage: tools/format.sh

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/utils/parse_options.sh"
cd "$root"
export PATH="${DPANON_VENV:-$root/.venv}/bin:$PATH"

ruff check --fix .
ruff format .
tools/shell_files.sh | xargs -d '\n' shfmt -i 2 -ci -w
