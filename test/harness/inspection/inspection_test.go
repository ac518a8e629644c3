/*
Copyright 2026 The koord-jobqueue Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package inspection

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

const text = `# HELP scheduler_jobqueue_audits_total Audits.
# TYPE scheduler_jobqueue_audits_total counter
scheduler_jobqueue_audits_total{result="Clean"} 3
scheduler_jobqueue_audits_total{result="Differences"} 1
scheduler_jobqueue_audits_total{result="Failed"} 2
up 1
malformed
`

func serve(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		if r.URL.Path == "/metrics" {
			fmt.Fprint(w, text)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestMetrics(t *testing.T) {
	url := serve(t, http.StatusOK)
	seen := map[string]float64{}
	require.NoError(t, Metrics(t.Context(), url, func(name, labels string, value float64) {
		seen[name+" "+labels] = value
	}))
	require.Equal(t, map[string]float64{
		`scheduler_jobqueue_audits_total result="Clean"`:       3,
		`scheduler_jobqueue_audits_total result="Differences"`: 1,
		`scheduler_jobqueue_audits_total result="Failed"`:      2,
		"up ": 1,
	}, seen)
	clean, other, err := Audits(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, []float64{3, 3}, []float64{clean, other})
}

func TestARefusalIsAnError(t *testing.T) {
	_, err := Get(t.Context(), serve(t, http.StatusForbidden))
	require.ErrorContains(t, err, "403")
}

func TestLinesOfPanics(t *testing.T) {
	for line, panics := range map[string]bool{
		"panic: runtime error":            true,
		"fatal error: concurrent map":     true,
		`E1 x.go:1] "Observed a panic"`:   true,
		"I1 x.go:1] nothing to see":       false,
		`I1 x.go:1] job "panic: in name"`: false,
	} {
		require.Equal(t, panics, panicLine.MatchString("before\n"+line+"\nafter"), line)
	}
}
