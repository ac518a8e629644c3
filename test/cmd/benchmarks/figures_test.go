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
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/test/perf/runner"
)

// reports are of the types that the measurements have, with one element in each list.
func reports(t *testing.T) map[string]report {
	t.Helper()
	all := map[string]report{}
	for name, result := range map[string]any{
		"baseline": &runner.Report{}, "jobs": &runner.JobsReport{}, "wake": &runner.StandingReport{},
		"startup": &runner.StandingReport{}, "reclaim": &runner.ReclaimReport{}, "latency": &runner.LatencyReport{},
		"memory": &runner.UnitMemory{}, "savings": &runner.SavingsReport{},
	} {
		fill(reflect.ValueOf(result).Elem())
		text, err := json.Marshal(result)
		require.NoError(t, err)
		r := report{Date: "2026-01-01", Commit: "12345678", Machine: "2 cores"}
		require.NoError(t, json.Unmarshal(text, &r.Result))
		all[name] = r
	}
	return all
}

func fill(v reflect.Value) {
	switch {
	case !v.CanSet():
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

// TestFiguresAreInReports: each figure is made of fields that the report of its measurement has.
func TestFiguresAreInReports(t *testing.T) {
	all := reports(t)
	require.Len(t, all, len(measurements))
	for _, m := range measurements {
		for _, f := range m.figures {
			value, err := f.of(all[m.name])
			require.NoError(t, err, m.name)
			require.NotEmpty(t, value, f.what)
		}
	}
	delete(all["jobs"].Result, "podsMade")
	_, err := table(all, false)
	require.ErrorContains(t, err, "podsMade")
}

func TestRewrite(t *testing.T) {
	all := reports(t)
	path := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(path, []byte("before\n"+begin+"former\n"+end+"after\n"), 0o600))
	require.NoError(t, rewrite(path, all))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Regexp(t, `(?s)^before\n.*\| figure \|.*baseline.*2026-01-01, 12345678.*2 cores.*after\n$`, string(text))
	require.NotContains(t, string(text), "former")
	require.NotContains(t, string(text), "ideal", "it is in docs/benchmarks.md alone")

	r := all["jobs"]
	r.Machine = "4 cores"
	all["jobs"] = r
	require.ErrorContains(t, rewrite(path, all), "several machines")
}
