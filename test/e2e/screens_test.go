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

package e2e_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// screens is the output for three persons. E2E_GOLDEN=1 rewrites it.
const screens = "testdata/screens.txt"

// Parts that differ from run to run: ages, times, and the width of columns that hold them.
var (
	ages   = regexp.MustCompile(`(?m)\b\d+(d|h|m|s)(\d+(m|s))?( |$)`)
	times  = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]+Z|\b\d\d:\d\d:\d\d\b`)
	widths = regexp.MustCompile(`(\S) {2,}`)
	ends   = regexp.MustCompile(`(?m) +$`)
)

// showScreens runs the reading commands as three persons: a submitter, the lead of a department and the operator of the
// cluster. It compares their output with the golden file.
func (c *cluster) showScreens(t *testing.T, red string) {
	t.Helper()
	var seen strings.Builder
	for _, person := range []struct{ user, is string }{
		{"rose", "a submitter, who may view the jobs of namespace red"},
		{"lead", "the lead of the department, who may view the jobs of both namespaces"},
		{"boss", "the operator"},
	} {
		fmt.Fprintf(&seen, "## %s: %s\n", person.user, person.is)
		for _, args := range []string{
			"list -n " + red, "list -A", "list --queue shared --state pending", "queues -n " + red, "queues -A",
			"why second -n " + red, "why secret -n blue", "top -n " + red + " --resource cpu",
			"top -A --resource cpu", "share -n " + red, "share -A", "history second -n " + red, "history --queue shared",
			"usage -n " + red, "usage -A",
		} {
			fmt.Fprintf(&seen, "\n$ kubectl jobqueue %s\n", args)
			out, err := c.kubectlJobqueue(t, person.user, strings.Fields(args)...)
			seen.WriteString(out)
			if err != nil {
				fmt.Fprintf(&seen, "Error: %v\n", err)
			}
		}
		seen.WriteString("\n")
	}
	text := widths.ReplaceAllString(times.ReplaceAllString(ages.ReplaceAllString(seen.String(), "AGE$4"), "TIME"), "$1  ")
	text = ends.ReplaceAllString(text, "")
	if os.Getenv("E2E_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(screens, []byte(text), 0o600))
	}
	want, err := os.ReadFile(screens)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}
