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

package reasons

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// TestTable: the table has one row for each constant, sorted, and each row has its sentences.
func TestTable(t *testing.T) {
	var want, have []string
	constant := regexp.MustCompile(`(?m)^(?:const |\t)Reason(?:[A-Z]\w*)?(?:\s+Reason)?\s+= "(\w+)"`)
	for _, file := range []string{
		"../../../pkg/core/unit/reasons.go", "../unitcondition/unitcondition.go", "../../controller/stray/queue.go",
	} {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		found := constant.FindAllStringSubmatch(string(source), -1)
		require.NotEmpty(t, found, file)
		for _, match := range found {
			// Reasons for the end of a job explain nothing.
			if match[1] != unitcondition.ReasonSucceeded && match[1] != unitcondition.ReasonFailed {
				want = append(want, match[1])
			}
		}
	}
	for _, r := range Table() {
		have = append(have, string(r.Reason))
		require.Regexp(t, `^[A-Z\x60].*\.$`, r.Meaning, r.Reason)
		require.Regexp(t, "^[A-Z][^`*_]*[.]$", r.Advice, "%s: advice is shown in terminals", r.Reason)
	}
	require.Greater(t, len(want), 50)
	slices.Sort(want)
	require.Equal(t, slices.Compact(want), have, "either process may give the reason")
}

func TestOf(t *testing.T) {
	for _, r := range rows {
		require.Equal(t, r, Of(string(r.Reason)))
	}
	for _, r := range rows {
		require.NotRegexp(t, "[][`]", r.Plain())
	}
	require.Contains(t, Of(string(unit.ReasonUnknownQuota)).Plain(), "or the path of the job leads to none")
	require.True(t, Of(string(unit.ReasonQuotaExceeded)).Ordinary)
	require.Equal(t, Row{Reason: "OfAnotherVersion"}, Of("OfAnotherVersion"))
}
