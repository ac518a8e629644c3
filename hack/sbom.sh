#!/usr/bin/env bash
# Builds the programs as they are in the images, and lists the modules that are in each of them (CycloneDX, JSON): in
# _artifacts/images/NAME/NAME and _artifacts/images/NAME/sbom.cdx.json. The list is read from the program, not from go.mod: it
# has what was linked, and nothing else.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

tool="$ROOT/bin/cyclonedx-gomod"
module="$ROOT/hack/tools/cyclonedx-gomod"

if [[ ! -x "$tool" || "$module/go.sum" -nt "$tool" ]]; then
  step "build cyclonedx-gomod" "$GO" build -C "$module" -ldflags "-s -w" -o "$tool" \
    github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
fi
for name in koord-scheduler jobqueue-controller; do
  directory="_artifacts/images/$name"
  mkdir -p "$directory"
  step "build $name" env CGO_ENABLED=0 GOOS=linux "$GO" build -trimpath -ldflags "-s -w" -o "$directory/$name" "./cmd/$name"
  step "bill of materials of $name" "$tool" bin -json -noserial -output "$directory/sbom.cdx.json" "$directory/$name"
done
summary
