#!/usr/bin/env bash
# Looks for known vulnerabilities in what the programs call, with govulncheck. Its database is asked over the network; GOVULNDB
# names a mirror of it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version="${GOVULNCHECK_VERSION:-v1.9.0}"
step "known vulnerabilities, by govulncheck $version" "$GO" run "golang.org/x/vuln/cmd/govulncheck@$version" \
  ${GOVULNDB:+-db="$GOVULNDB"} ./cmd/koord-scheduler ./cmd/jobqueue-controller
summary
