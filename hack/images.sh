#!/usr/bin/env bash
# Builds both container images, with their bills of materials, and writes their names into the kustomizations under manifests. PREFIX is registry and path,
# TAG the tag (latest). With PUSH=1 the images are pushed, and named by digest.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[[ -n "${PREFIX:-}" ]] || { echo "PREFIX is missing: the registry and path of your own, e.g. make images PREFIX=registry.example.com/queue" >&2; exit 2; }
tag="${TAG:-latest}"
names=("$tag")
step "programs and what is in them" hack/sbom.sh
for name in koord-scheduler jobqueue-controller; do
  step "image $PREFIX/$name:$tag" docker build --platform "linux/$("$GO" env GOARCH)" -f "cmd/$name/Dockerfile" \
    -t "$PREFIX/$name:$tag" "_artifacts/images/$name"
  if [[ "${PUSH:-}" == 1 ]]; then
    step "push $PREFIX/$name:$tag" docker push "$PREFIX/$name:$tag"
    pushed="$(docker image inspect --format '{{range .RepoDigests}}{{println .}}{{end}}' "$PREFIX/$name:$tag" | grep -m1 "^$PREFIX/$name@")"
    names+=("$name=${pushed#*@}")
  fi
done
step "names in manifests" hack/set-images.sh "$PREFIX" "${names[@]}"
