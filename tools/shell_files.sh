#!/usr/bin/env bash
# Every shell script that git knows or would take, by its name or its first line; one a line.
#
# Usage: tools/shell_files.sh

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/utils/parse_options.sh"
cd "$root"

git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  if [ ! -f "$file" ] || [ -L "$file" ]; then
    continue
  fi
  case ${file##*/} in
    *.sh) echo "$file" ;;
    *.*) ;;
    *)
      if LC_ALL=C grep -qm 1 -aE '^#!.*\b(ba)?sh$' <(head -n 1 "$file"); then
        echo "$file"
      fi
      ;;
  esac
done
