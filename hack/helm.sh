#!/usr/bin/env bash
# Prints the path of Helm: of the one in PATH if it is 3.17 or later, or else of bin/helm, which is built from its module. That
# takes minutes once.
#
#   PINNED=1  bin/helm in any case, which makes the same chart of the same commit
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

module="$ROOT/hack/tools/helm"
built="$ROOT/bin/helm"

# recent PROGRAM: whether it is a Helm that this chart installs with.
recent() {
  local version
  version="$("$1" version --template '{{.Version}}' 2>/dev/null)" &&
    [[ "$(printf 'v3.17\n%s\n' "$version" | sort -V | head -n 1)" == v3.17 ]]
}

if [[ -z "${PINNED:-}" ]] && found="$(command -v helm)" && recent "$found"; then
  realpath "$found"
  exit
fi
if [[ ! -x "$built" || "$module/go.sum" -nt "$built" ]]; then
  step "build helm" "$GO" build -C "$module" -ldflags "-s -w" -o "$built" helm.sh/helm/v4/cmd/helm >&2
fi
echo "$built"
