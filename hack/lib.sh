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
# It stops the script when the command fails, after naming the step. In a lane the output comes when the command has ended.
step() {
  local title="$1" start=$SECONDS status=0
  shift
  printf '\n=== %s (at %s)\n' "$title" "$(elapsed "$SECONDS")"
  if [[ -n "${LANE:-}" ]]; then
    "$@" >"$LANE.log" 2>&1 || status=$?
    printf '\n=== output of: %s\n%s\n' "$title" "$(<"$LANE.log")"
  else
    "$@" || status=$?
  fi
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

# step_if_changed TITLE COMMAND...: a step whose result follows from the command and from the files at the paths in INPUTS. It is
# left out if it was ok with the same command, files, modules and Go before; FORCE=1 runs it. What was ok is an empty file in
# _artifacts/passed, named by a hash of all that. Without git every run is a new one.
step_if_changed() {
  local title="$1" inputs stamp
  shift
  inputs="$(tree go.mod go.sum "${INPUTS[@]}")" || inputs="$(date +%s.%N)"
  stamp="_artifacts/passed/$({ echo "$inputs" "$@" && "$GO" version; } | sha256sum | cut -c 1-40)"
  if [[ -e "$stamp" && -z "${FORCE:-}" ]]; then
    STEPS+=("ok   as before: same inputs  $title")
    printf -- '\n--- ok, as before: same inputs: %s\n' "$title"
    return
  fi
  step "$title" "$@"
  mkdir -p _artifacts/passed
  touch "$stamp"
}

# tree PATH...: a hash of the files at the paths as they are in the working tree, committed or not.
tree() (
  GIT_INDEX_FILE="$(mktemp -u)"
  export GIT_INDEX_FILE
  trap 'rm -f "$GIT_INDEX_FILE"' EXIT
  git add -- "$@" && git write-tree
)

# summary prints the steps; that of a lane is kept for the script that started it.
summary() {
  if [[ -n "${LANE:-}" ]]; then
    printf '%s\n' "${STEPS[@]}" >"$LANE.steps"
    return
  fi
  printf '\n=== Summary\n'
  printf '%s\n' "${STEPS[@]}"
}

# lanes FUNCTION...: runs the steps of each function, all functions at once, and stops the script if a step failed.
# Lanes are process groups of their own, so that an interrupt ends what their steps started.
lanes() {
  local dir lane pid status=0 pids=()
  dir="$(mktemp -d)"
  set -m
  for lane in "$@"; do
    (
      STEPS=() LANE="$dir/$lane"
      "$lane"
      summary
    ) &
    pids+=("$!")
  done
  set +m
  # shellcheck disable=SC2064 # the lanes of this call
  trap "kill $(printf -- '-%s ' "${pids[@]}") 2>/dev/null; exit 130" INT TERM
  for pid in "${pids[@]}"; do
    wait "$pid" || status=$?
  done
  trap - INT TERM
  for lane in "$@"; do
    mapfile -t -O "${#STEPS[@]}" STEPS <"$dir/$lane.steps"
  done
  rm -rf "$dir"
  if ((status != 0)); then
    summary
    exit "$status"
  fi
}

# unit_packages: our packages, without those whose tests need a control plane, and without the simulator, whose own tests take
# longer than all others.
unit_packages() {
  "$GO" list ./... | grep -v -E '/test/(integration|e2e|operators|sim)(/|$)'
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
