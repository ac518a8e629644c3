#!/usr/bin/env bash
# Fails when something generated is not current, and leaves the tree as it was.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

generated() {
  find apis -name 'zz_generated*.go'
  find manifests docs -name '*.yaml' -o -name '*.json' -o -name '*.md' -o -name '*.svg'
}

before="$(mktemp -d)"
trap 'rm -rf "$before"' EXIT
generated | sort >"$before.list"
trap 'rm -rf "$before" "$before.list"' EXIT
tar -cf - -T "$before.list" | tar -xf - -C "$before"

hack/generate.sh

stale=0
while read -r file; do
  if [[ ! -f "$before/$file" ]]; then
    echo "$file is not in the tree"
    rm "$file"
    stale=1
  elif ! diff -u --label "$file" --label "$file (generated)" "$before/$file" "$file"; then
    cp "$before/$file" "$file"
    stale=1
  fi
done < <(generated | sort)
if ((stale)); then
  echo "Generated files are not current: run hack/generate.sh (or make generate) and commit what it writes." >&2
  exit 1
fi
echo "everything generated is current"
