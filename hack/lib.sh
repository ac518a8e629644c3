# Shared by the scripts of this directory: where the repository is, and steps that show how long they take.
# shellcheck shell=bash

set -euo pipefail

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$ROOT"
export CGO_ENABLED="${CGO_ENABLED:-0}"
GO="${GO:-go}"

STEPS=()

# seconds as 3m07s
elapsed() { printf '%dm%02ds' "$(($1 / 60))" "$(($1 % 60))"; }

# step TITLE COMMAND...: runs the command between a headline and a line with the time it took.
# It stops the script when the command fails, after naming the step.
step() {
  local title="$1" start=$SECONDS status=0
  shift
  printf '\n=== %s (at %s)\n' "$title" "$(elapsed "$SECONDS")"
  "$@" || status=$?
  local took
  took="$(elapsed $((SECONDS - start)))"
  if ((status != 0)); then
    STEPS+=("FAIL $took  $title")
    printf -- '--- FAIL: %s after %s\n' "$title" "$took"
    summary
    exit "$status"
  fi
  STEPS+=("ok   $took  $title")
  printf -- '--- ok: %s in %s\n' "$title" "$took"
}

summary() {
  printf '\n=== Summary\n'
  printf '%s\n' "${STEPS[@]}"
}

# packages PATTERN...: our packages, without those whose tests need a control plane.
unit_packages() {
  "$GO" list ./... | grep -v -E '/test/(integration|e2e|operators)(/|$)'
}

# existing DIR...: those of the directories that hold Go packages, as patterns.
existing() {
  local dir
  for dir in "$@"; do
    if [[ -n "$(find "$dir" -name '*.go' -print -quit 2>/dev/null)" ]]; then
      printf './%s/...\n' "$dir"
    fi
  done
}
