#!/usr/bin/env bash
# Builds the container images without Docker: OCI archives and their digests in _artifacts/images.
#
#   PREFIX     registry and path of your own, such as registry.example.com/queue; manifests then name the images by digest
#   TAG        tag of the images (latest)
#   PUSH=1     push the images to PREFIX
#   PLATFORMS  linux/amd64,linux/arm64
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ "${PUSH:-}" == 1 && -z "${PREFIX:-}" ]]; then
  echo "PUSH=1 needs PREFIX, the registry and path of your own: make images PREFIX=registry.example.com/queue PUSH=1" >&2
  exit 2
fi
directory="_artifacts/images"
mkdir -p "$directory"
step "build the image builder" "$GO" build -C hack/tools/images -o "$ROOT/bin/jobqueue-images" .
step "images" bin/jobqueue-images -out "$directory" -prefix "${PREFIX:-}" -tag "${TAG:-latest}" \
  -platforms "${PLATFORMS:-linux/amd64,linux/arm64}" ${PUSH:+-push}
if [[ -n "${PREFIX:-}" ]]; then
  digests=()
  for program in koord-scheduler jobqueue-controller jobqueue-web; do
    digests+=("$program=$(<"$directory/$program.digest")")
  done
  step "names in manifests" hack/set-images.sh "$PREFIX" "${digests[@]}"
fi
summary
