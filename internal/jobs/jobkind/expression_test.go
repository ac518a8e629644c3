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

package jobkind

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/stretchr/testify/require"
)

func TestWhatAnExpressionReads(t *testing.T) {
	x, err := sharedExpressions()
	require.NoError(t, err)
	for text, want := range map[string][]string{
		`self.a.b == "x"`:                                        {".a.b"},
		`has(self.a.b) && self.a.b.c == 1`:                       {".a.b"},
		`self["a"]["b"] == 1`:                                    {".a.b"},
		`self.?a.b.orValue(1) == 1`:                              {".a.b"},
		`self.list.exists(c, c.type == self.want)`:               {".list", ".want"},
		`self.m.all(k, self.m[k].ready)`:                         {".m"},
		`self.a.map(x, x.size()).sum() > self.b ? true : self.c`: {".a", ".b", ".c"},
		`true`: nil,
	} {
		e, err := x.compile(text, cel.BoolType)
		require.NoError(t, err, text)
		var reads []string
		for _, p := range e.Reads {
			reads = append(reads, p.String())
		}
		require.Equal(t, want, reads, text)
	}
}

// Nobody writes an object that an expression takes long over.
func TestAnExpressionCostsNoMoreThanItMay(t *testing.T) {
	x, err := sharedExpressions()
	require.NoError(t, err)
	e, err := x.compile(`self.l.all(a, self.l.all(b, a + b >= 0))`, cel.BoolType)
	require.NoError(t, err)
	list := make([]any, 2000)
	for i := range list {
		list[i] = int64(i)
	}
	_, err = e.eval(map[string]any{"l": list})
	require.ErrorContains(t, err, "cost")
	require.False(t, e.Holds(map[string]any{"l": list}))
}
