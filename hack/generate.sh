#!/usr/bin/env bash
# Writes everything that is generated: deep copies, CRDs, the copy of the scheduler's configuration, alerts,
# dashboard, and the tables and pictures in docs/. hack/verify-generated.sh fails when this would change anything.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

"$GO" run ./hack/generate
