#!/usr/bin/env bash
# Writes a release to _artifacts/release/VERSION: images as OCI archives, the Helm chart, the kubectl plugin and its krew
# manifest, jobqueue-migrate, notes, provenance and checksums. CHANGELOG.md must have a heading of the version. Nothing is
# published.
#
#   VERSION    of the release, such as v0.3.0
#   PREFIX     registry and path of the images; with PUSH=1 they are pushed there
#   KEY        file of your secret key of minisign, which signs the checksums; its password is read from standard input
#   OUT        another directory to write to
#   CHANGES    another changelog to take the notes from
#   PLATFORMS  of images and programs; as a rule linux/amd64,linux/arm64 for images, and five for programs
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [[ -z "${VERSION:-}" ]]; then
  echo "make release needs VERSION, such as v0.3.0" >&2
  exit 2
fi
changes="${CHANGES:-CHANGELOG.md}"
if ! grep -qx "## $VERSION" "$changes"; then
  echo "$changes has no heading \"## $VERSION\": rename the heading Unreleased" >&2
  exit 2
fi
out="${OUT:-_artifacts/release/$VERSION}"
rm -rf "$out"
mkdir -p "$out"
step "images" env TAG="$VERSION" hack/images.sh
cp _artifacts/images/*.tar _artifacts/images/*.digest "$out"
step "chart" env VERSION="$VERSION" PINNED=1 hack/chart.sh
cp "_artifacts/chart/koord-jobqueue-${VERSION#v}.tgz" "$out"
programs="$(mktemp -d)"
step "unpack images" bin/jobqueue-images -out "$out" -unpack "$programs"
step "plugin, notes, provenance and checksums" "$GO" run ./hack/release -version "$VERSION" -out "$out" -changes "$changes" \
  -images "$programs" -commit "$(git rev-parse HEAD)" ${PLATFORMS:+-platforms "$PLATFORMS"}
rm -rf "$programs"
if [[ -n "${KEY:-}" ]]; then
  step "build minisign" "$GO" build -C hack/tools/minisign -o "$ROOT/bin/minisign" aead.dev/minisign/cmd/minisign
  step "sign the checksums" bin/minisign -S -s "$KEY" -t "koord-jobqueue $VERSION" -m "$out/SHA256SUMS"
fi
summary
