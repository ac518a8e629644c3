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

package document_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

func TestDecodeIsBounded(t *testing.T) {
	many := func(n int) string { return strings.Repeat("---\nkind: A\n", n) }
	list := func(n int) string { return "kind: AList\nitems:\n" + strings.Repeat("- kind: A\n", n) }
	nested := func(n int) string { return "a: " + strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, tc := range map[string]struct {
		input string
		read  int
		found finding.Reason
	}{
		"as many as there may be": {many(document.MaxObjects), document.MaxObjects, ""},
		"one more":                {many(document.MaxObjects + 1), document.MaxObjects, finding.TooLarge},
		"one more in a list":      {list(document.MaxObjects + 1), document.MaxObjects, finding.TooLarge},
		"as deep as may be":       {nested(63), 1, ""},
		"one level more":          {nested(64), 0, finding.TooLarge},
		"far deeper":              {nested(9000), 0, finding.TooLarge},
		"one byte more":           {strings.Repeat("#", document.MaxBytes+1), 0, finding.TooLarge},
		"a list in a list":        {"kind: AList\nitems: [{kind: BList, items: [{kind: A}]}]", 0, ""},
		"aliases that multiply":   {"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + bomb(), 0, finding.Unreadable},
	} {
		t.Run(name, func(t *testing.T) {
			var out finding.List
			require.Len(t, document.Decode([]byte(tc.input), &out), tc.read)
			if tc.found == "" {
				require.Empty(t, out.Sorted())
				return
			}
			require.Len(t, out.Sorted(), 1)
			require.Equal(t, tc.found, out.Sorted()[0].Reason)
		})
	}
}

// bomb are lists of ten aliases each of the list before.
func bomb() string {
	var b strings.Builder
	for c := 'b'; c < 'k'; c++ {
		fmt.Fprintf(&b, "%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ","))
	}
	return b.String()
}

func TestAmount(t *testing.T) {
	for _, tc := range []struct {
		value any
		want  string
	}{
		{int64(4), "4"}, {"500m", "500m"}, {"1.5", "1500m"}, {1.5, "1500m"}, {"16Gi", "16Gi"}, {"100G", "100G"},
		{"", ""}, {"-1", ""}, {int64(-1), ""}, {"1e3", ""}, {"1e999999999", ""}, {1e300, ""}, {"Gi", ""}, {true, ""},
		{nil, ""}, {strings.Repeat("9", 19), ""}, {"0." + strings.Repeat("1", 10), ""}, {[]any{}, ""},
	} {
		amount, err := document.Amount(tc.value)
		if tc.want == "" {
			require.Error(t, err, "%v", tc.value)
			continue
		}
		require.NoError(t, err, "%v", tc.value)
		require.Equal(t, tc.want, amount.String())
	}
}
