#!/usr/bin/env bash
# Plants the bugs of test/mutants, one after the other, in a copy of the tree, and runs the fast tests of the packages that
# the patch names: they have to fail. A patch that does not apply or does not compile is an error, as is one that
# survives. Arguments name some patches only, without path and suffix.
#
# The header of a patch says where the bug comes from, the invariant that it breaks, and the packages.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

COPY="$(mktemp -d)"
trap 'rm -rf "$COPY"' EXIT
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --create | tar --extract --directory "$COPY"
git -C "$COPY" init --quiet # so that no repository around it decides where a patch applies

if (($# == 0)); then
  mapfile -t names < <(cd test/mutants && printf '%s\n' *.patch | sed 's/\.patch$//')
else
  names=("$@")
fi

header() { sed -n "s/^$2: //p" "test/mutants/$1.patch" | head -n 1; }

# check PACKAGES...: compiles and runs their tests in the copy. Properties draw the same histories every time.
check() {
  local package flags
  for package in "$@"; do
    flags=()
    [[ "$package" == ./pkg/core/* ]] && flags=(-rapid.seed=1 -rapid.nofailfile -rapid.shrinktime=0s)
    (cd "$COPY" && "$GO" test -short -count=1 -failfast -vet=off -timeout 5m "$package" "${flags[@]}") >"$COPY/output" 2>&1 || return 1
  done
}

# verdict NAME
verdict() {
  local name="$1" packages
  read -ra packages <<<"$(header "$name" Tests)"
  if ! git -C "$COPY" apply "$ROOT/test/mutants/$name.patch" 2>"$COPY/output"; then
    echo "does not apply"
    return
  fi
  if check "${packages[@]}"; then
    echo "survived"
  elif grep -q -F '[build failed]' "$COPY/output"; then
    echo "does not compile"
  elif grep -q -e '^--- FAIL' -e '^    --- FAIL' -e '^panic: ' -e '^fatal error: ' "$COPY/output"; then
    echo "killed by $(grep -m 1 -o -E '^ *--- FAIL: [^ ]+|^fatal error: .*' "$COPY/output" | sed 's/^ *--- FAIL: //')"
  else
    echo "does not run"
  fi
  git -C "$COPY" apply --reverse "$ROOT/test/mutants/$name.patch"
}

mapfile -t all < <(for name in "${names[@]}"; do header "$name" Tests | tr ' ' '\n'; done | sort -u)
if ! check "${all[@]}"; then
  echo "the tests fail without any of the bugs:" >&2
  cat "$COPY/output" >&2
  exit 1
fi

killed=0 failed=0
printf '| bug | breaks | verdict |\n|---|---|---|\n'
for name in "${names[@]}"; do
  result="$(verdict "$name")"
  printf '| `%s` | %s | %s |\n' "$name" "$(header "$name" Invariant)" "$result"
  if [[ "$result" == killed* ]]; then
    killed=$((killed + 1))
  else
    failed=$((failed + 1))
    [[ "$result" == survived ]] || head -n 40 "$COPY/output" | sed 's/^/    /' >&2
  fi
done
printf '\n%d of %d killed\n' "$killed" "$((killed + failed))"
((failed == 0))
