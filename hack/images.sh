#!/usr/bin/env bash
# Builds both container images. PREFIX and TAG name them.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

prefix="${PREFIX:-koord-jobqueue}"
tag="${TAG:-latest}"
for name in koord-scheduler jobqueue-controller; do
  step "image $prefix/$name:$tag" docker build -f "cmd/$name/Dockerfile" -t "$prefix/$name:$tag" .
done
