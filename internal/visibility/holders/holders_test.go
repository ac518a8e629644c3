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

package holders

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
)

func TestList(t *testing.T) {
	row := func(key string, cores int64) questions.HolderRow {
		return questions.HolderRow{Key: key, Quota: "q", Amount: 1000 * cores}
	}
	many := questions.Holders{Level: "firm", Resource: "cpu", Total: 300_000}
	for i := range 150 {
		many.Rows = append(many.Rows, row(fmt.Sprintf("red/u%03d", i), 2))
	}
	few := questions.Holders{
		Level: "firm", Resource: "cpu", Total: 10_000, Rows: []questions.HolderRow{row("blue/b", 5), row("red/a", 3)},
	}
	red := func(namespace string) bool { return namespace == "red" }
	for name, c := range map[string]struct {
		in     questions.Holders
		units  int
		first  string
		others string
	}{
		"no level":                            {questions.Holders{}, 0, "", ""},
		"units of others, and some not read":  {few, 1, "a", "7"},
		"more than an answer names":           {many, 100, "u000", "100"},
		"pods that are left use more than it": {questions.Holders{Level: "l", Resource: "cpu", Rows: few.Rows}, 1, "a", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			list := List(&c.in, red)
			if c.units == 0 {
				require.Nil(t, list)
				return
			}
			require.Len(t, list.Units, c.units)
			require.Equal(t, c.first, list.Units[0].Name)
			require.Equal(t, c.others, list.Others.String())
		})
	}
}

// An answer about units of very many namespaces asks about ten of them.
func TestOnceIsBounded(t *testing.T) {
	var asked []string
	may := Once("own", func(namespace string) bool {
		asked = append(asked, namespace)
		return namespace == "n1"
	})
	require.True(t, may("own"))
	require.Empty(t, asked)
	for range 2 {
		for i := range 1000 {
			require.Equal(t, i == 1, may(fmt.Sprint("n", i)), i)
		}
	}
	require.Len(t, asked, mostAsked)
	require.Empty(t, asked[0], "all namespaces at first")

	asked = nil
	may = Once("own", func(namespace string) bool {
		asked = append(asked, namespace)
		return true
	})
	require.True(t, may("n1") && may("n2"))
	require.Equal(t, []string{""}, asked)
}
