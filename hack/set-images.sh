#!/usr/bin/env bash
# Writes the names of both images into the kustomizations under manifests (DIR is another copy of them):
#
#   hack/set-images.sh registry.example.com/queue v1             by tag
#   hack/set-images.sh registry.example.com/queue \
#     koord-scheduler=sha256:... jobqueue-controller=sha256:...  by digest
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
scheduler="$(line koord-scheduler)"
controller="$(line jobqueue-controller)"
for file in "$dir"/{base,components}/*/kustomization.yaml; do
  sed -i -E "
    /^- name: koord-scheduler\$/,/^- |^[a-z]/{s|^  newName: .*|  newName: $prefix/koord-scheduler|;s|^  (newTag\|digest): .*|  $scheduler|}
    /^- name: jobqueue-controller\$/,/^- |^[a-z]/{s|^  newName: .*|  newName: $prefix/jobqueue-controller|;s|^  (newTag\|digest): .*|  $controller|}
  " "$file"
done
echo "$prefix/koord-scheduler, $scheduler"
echo "$prefix/jobqueue-controller, $controller"
