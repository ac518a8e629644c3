#!/usr/bin/env bash
# Renders the Helm chart from manifests/ into _artifacts/chart, lints it, compares it with what kustomize builds, and packs it.
#
#   VERSION  version of the chart, and default tag of the image (v0.0.0-dev)
#   PINNED=1 packs with the Helm of hack/tools/helm, whichever is in PATH
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

helm="$("$ROOT/hack/helm.sh")"
chart="$ROOT/_artifacts/chart/koord-jobqueue"

step "render the chart" "$GO" run ./hack/chart -out "$chart" -version "${VERSION:-v0.0.0-dev}"
step "lint the chart" "$helm" lint --strict --set image.registry=registry.example.com/queue "$chart"
step "compare the chart with kustomize" env JOBQUEUE_HELM="$helm" JOBQUEUE_CHART="$chart" \
  "$GO" test -vet=off -count=1 ./manifests -run '^(TestChart|TestEverySettingIsReachable)'
# Helm packs the times of the files, which have to be the same for the same commit.
find "$chart" -exec touch -d @0 {} +
step "pack the chart" "$helm" package --destination "$(dirname "$chart")" "$chart"
summary
