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

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A bug that cannot be planted says nothing about the tests. More than forty take too long to be run often.
func TestEveryMutantCanBePlanted(t *testing.T) {
	const root, most = "../../..", 40
	mutants, err := read(filepath.Join(root, list))
	require.NoError(t, err)
	require.NotEmpty(t, mutants)
	require.LessOrEqual(t, len(mutants), most, "take one out for each that comes")
	require.True(t, slices.IsSortedFunc(mutants, func(a, b mutant) int { return strings.Compare(a.Name, b.Name) }))
	for i, m := range mutants {
		require.NotEmpty(t, m.Origin, m.Name)
		require.NotEmpty(t, m.Invariant, m.Name)
		require.NotEmpty(t, m.Tests, m.Name)
		require.True(t, i == 0 || mutants[i-1].Name != m.Name, m.Name)
		file, text, err := m.plant(root)
		require.NoError(t, err)
		before, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotEqual(t, string(before), string(text), m.Name)
	}
}

func TestPlant(t *testing.T) {
	root := t.TempDir()
	const source = `package p

var checks = []int{1, two}

func f(a, b int) bool {
	return a < 1 || // not now
		b < 2 || b < 2
}

type T[X any] struct{}

func (t *T[X]) f(a int) {
	g(
		a,
		1,
	)
}
`
	require.NoError(t, os.Mkdir(filepath.Join(root, "p"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "p", "p.go"), []byte(source), 0o600))
	for _, tc := range []struct{ name, function, replace, with, want, fault string }{
		{"an expression", "p:f", "a<1", "true", "return true || // not now", ""},
		{"over two lines", "p:f", "a < 1 || b < 2", "true", "return true || b < 2", ""},
		{"twice", "p:f", "b < 2", "true", "", "more than one"},
		{"nowhere", "p:f", "c < 2", "true", "", "it has no"},
		{"a statement of a method", "p:T.f", "g(a, 1)", "", "f(a int) {\n\t\n}", ""},
		{"a variable", "p:checks", "two", "2", "[]int{1, 2}", ""},
		{"no such function", "p:g", "a", "b", "", "there is no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := mutant{Name: tc.name, Function: tc.function, Replace: tc.replace, With: tc.with}
			_, text, err := m.plant(root)
			if tc.fault != "" {
				require.ErrorContains(t, err, tc.fault)
				return
			}
			require.NoError(t, err)
			require.Contains(t, string(text), tc.want)
		})
	}
}
