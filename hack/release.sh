#!/usr/bin/env bash
# Writes a release to _artifacts/release/VERSION: images as OCI archives, the Helm chart, the kubectl plugin and its krew
# manifest, jobqueue-migrate, notes and checksums. CHANGELOG.md must have a heading of the version. Nothing is published.
#
#   VERSION    of the release, such as v0.3.0
#   PREFIX     registry and path of the images; with PUSH=1 they are pushed there
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ -z "${VERSION:-}" ]]; then
  echo "make release needs VERSION, such as v0.3.0" >&2
  exit 2
fi
if ! grep -qx "## $VERSION" CHANGELOG.md; then
  echo "CHANGELOG.md has no heading \"## $VERSION\": rename the heading Unreleased" >&2
  exit 2
fi
out="_artifacts/release/$VERSION"
rm -rf "$out"
mkdir -p "$out"
step "images" env TAG="$VERSION" hack/images.sh
cp _artifacts/images/*.tar _artifacts/images/*.digest "$out"
step "chart" env VERSION="$VERSION" hack/chart.sh
cp "_artifacts/chart/koord-jobqueue-${VERSION#v}.tgz" "$out"
step "plugin, notes and checksums" "$GO" run ./hack/release -version "$VERSION" -out "$out"
summary
