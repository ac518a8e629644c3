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

package runner

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRequesters(t *testing.T) {
	const line = `{"verb":"VERB","user":{"username":"system:serviceaccount:kube-system:job-controller"},` +
		`"objectRef":{"resource":"RESOURCE","subresource":"SUB"},` +
		`"responseStatus":{"code":CODE},"requestReceivedTimestamp":"2026-01-01T00:00:SECONDZ"}` + "\n"
	log := &strings.Builder{}
	for _, x := range [][]string{
		{"create", "pods", "", "201", "01.000000"}, {"create", "pods", "", "201", "02.500000"},
		{"update", "jobs", "status", "409", "02.000000"},
		{"create", "subjectaccessreviews", "", "201", "02.000000"}, {"create", "pods", "", "201", "04.000000"},
	} {
		log.WriteString(strings.NewReplacer("VERB", x[0], "RESOURCE", x[1], "SUB", x[2], "CODE", x[3], "SECOND", x[4]).
			Replace(line))
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all, err := requesters(strings.NewReader(log.String()), begin, begin.Add(3*time.Second), 4)
	require.NoError(t, err)
	require.Equal(t, []Requester{
		{Who: "job-controller", Resource: "pods", Verb: "create", Code: 201, Count: 2, PerJob: 0.5},
		{Who: "job-controller", Resource: "jobs/status", Verb: "update", Code: 409, Count: 1, PerJob: 0.25},
	}, all)
}
