#!/usr/bin/env bash
# Runs golangci-lint, built from its own module; the import rules and the purity of the core are part of it. Then checks the
# sentences of the documentation. Arguments are package patterns; without, everything.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

tool="$ROOT/bin/golangci-lint"
module="$ROOT/hack/tools/golangci-lint"

if [[ ! -x "$tool" || "$module/go.sum" -nt "$tool" ]]; then
  step "build golangci-lint" "$GO" build -C "$module" -ldflags "-s -w" -o "$tool" \
    github.com/golangci/golangci-lint/v2/cmd/golangci-lint
fi
if (($# == 0)); then
  set -- ./...
  (cd pkg/submit && step "golangci-lint of the library for submitters" "$tool" run --config "$ROOT/.golangci.yml")
fi
step "golangci-lint" "$tool" run --config .golangci.yml "$@"
step "sentences" "$GO" run ./hack/prose
