#!/usr/bin/env bash
# Writes testdata/demo.txt.gz: the metrics that the table names, scraped every few seconds while the demo runs.
# "go test -C test/alerts . -golden" and "make generate" then draw the picture of the dashboard.
source "$(dirname "${BASH_SOURCE[0]}")/../../hack/lib.sh"

exec </dev/null
scrapes="$(mktemp -d)"
trap 'rm -rf "$scrapes"' EXIT

# names PROCESS: a pattern of the metrics that the table has for it.
names() {
  sed -n "s/^| \`\([a-z_]*\)\` | $1[ ,].*/\1/p" docs/reference/metrics.md | grep -v kubernetes_feature_enabled | paste -sd '|'
}

# argument PID NAME: the value of --NAME in the command line of a process.
argument() { tr '\0' '\n' <"/proc/$1/cmdline" | sed -n "s/^--$2=//p"; }

# scrape PROCESS COMMAND...: one section of the recording, with the time since its start.
scrape() {
  local process="$1"
  shift
  if "$@" >"$scrapes/last" 2>/dev/null; then
    echo "# scrape $process $SECONDS"
    grep -E "^($(names "$process"))(_bucket|_sum|_count)?[{ ]" "$scrapes/last" || true
  fi
}

"$GO" build -buildvcs=false -o bin/jobqueue-playground ./cmd/jobqueue-playground
bin/jobqueue-playground build
bin/jobqueue-playground demo --no-color --jobs=30 --dir="$scrapes/demo" >"$scrapes/log" &
demo=$!
SECONDS=0
while kill -0 "$demo" 2>/dev/null; do
  for pid in $(pgrep -P "$demo"); do
    case "$(tr '\0' ' ' <"/proc/$pid/cmdline")" in
    */koord-scheduler\ *) scrape scheduler curl -sf "http://127.0.0.1:$(argument "$pid" port)/metrics" ;;
    */jobqueue-controller\ *) scrape controller curl -sf "http://$(argument "$pid" metrics-bind-address)/metrics" ;;
    esac
  done
  admin="$scrapes/demo/kubeconfig/admin.yaml"
  if [[ -f "$admin" ]]; then
    scrape kube-apiserver "$GO" tool kubectl --kubeconfig "$admin" get --raw /metrics
  fi
  sleep 3
done >"$scrapes/recording"
wait "$demo"
grep -q '^# scrape scheduler' "$scrapes/recording"
gzip -9n <"$scrapes/recording" >test/alerts/testdata/demo.txt.gz
