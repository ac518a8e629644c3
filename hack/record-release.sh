#!/usr/bin/env bash
# Records what a release leaves in the API server, for TestUpgrade to begin with:
#
#   hack/record-release.sh COMMIT
#
# Scheduler, controller and manifests of the commit are built from a work tree of it; everything else of the control plane
# is of this tree. They run the work of test/e2e/record_test.go until each job is in the state that it is to be recorded
# in. The objects replace those in test/e2e/testdata/upgrade. Takes three minutes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if (($# != 1)); then
  sed -n '2,/^source/{/^#/s/^# \{0,1\}//p}' "$0" >&2
  exit 2
fi
commit="$(git rev-parse --verify "$1^{commit}")"
name="${commit:0:7}"
work="$(mktemp -d)"
trap 'git worktree remove --force "$work/source" || true; rm -rf "$work"' EXIT

step "work tree of $name" git worktree add --quiet --detach "$work/source" "$commit"
for program in koord-scheduler jobqueue-controller; do
  step "build $program of $name" \
    "$GO" build -C "$work/source" -buildvcs=false -ldflags "-s -w" -o "$work/bin/$program" "./cmd/$program"
done
step "build what else the recording starts" "$GO" run ./cmd/jobqueue-playground build
step "record $name" env JOBQUEUE_RECORD_SOURCE="$work/source" JOBQUEUE_RECORD_BIN="$work/bin" \
  JOBQUEUE_RECORD_COMMIT="$commit" JOBQUEUE_RECORD_INTO="$ROOT/test/e2e/testdata/upgrade" \
  "$GO" test -count=1 -v -timeout 10m ./test/e2e -run '^TestRecordRelease$'
summary
