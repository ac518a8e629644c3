#!/usr/bin/env bash
# Writes the names of the images into the kustomizations under manifests (DIR is another copy of them):
#
#   hack/set-images.sh registry.example.com/queue v1             by tag
#   hack/set-images.sh registry.example.com/queue \
#     koord-scheduler=sha256:... jobqueue-controller=sha256:... jobqueue-web=sha256:...  by digest
#
# As they are shipped the names cannot be resolved, so that nobody runs what somebody else has put under them.
set -euo pipefail

usage() {
  sed -n '2,8p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2
  exit 2
}
(($# >= 2)) || usage
prefix="${1%/}"
shift
[[ "$prefix" =~ ^[a-z0-9][a-z0-9._:/-]*$ ]] || { echo "not the name of a registry and path: $prefix" >&2; exit 2; }
dir="${DIR:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/manifests}"

# line says in which way the image of a name is chosen.
line() {
  local ref found=""
  for ref in "${refs[@]}"; do
    case "$ref" in
      "$1"=sha256:*) found="digest: ${ref#*=}" ;;
      *=*) ;;
      *) found="newTag: $ref" ;;
    esac
  done
  [[ -n "$found" ]] || { echo "no tag and no digest for $1" >&2; exit 2; }
  echo "$found"
}

refs=("$@")
names=(koord-scheduler jobqueue-controller jobqueue-web)
edits=""
for name in "${names[@]}"; do
  chosen="$(line "$name")"
  edits+="/^- name: $name\$/,/^- |^[a-z]/{s|^  newName: .*|  newName: $prefix/$name|;s|^  (newTag\|digest): .*|  $chosen|}"$'\n'
done
sed -i -E "$edits" "$dir"/{base,components}/*/kustomization.yaml
for name in "${names[@]}"; do
  echo "$prefix/$name, $(line "$name")"
done
