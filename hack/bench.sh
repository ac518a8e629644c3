#!/usr/bin/env bash
# Runs the benchmarks of the core, the engine, the plugin and the aggregated API. Arguments go to `go test`, for example -bench=Event -count=10.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

mapfile -t list < <(existing pkg/core internal/engine internal/quota internal/visibility pkg/plugin)
if (($# == 0)); then
  set -- -bench=. -benchtime=0.3s
fi
"$GO" test -run '^$' -benchmem -timeout 120m "$@" "${list[@]}"
