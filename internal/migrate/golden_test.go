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

package migrate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// TestGolden plays testdata/SYSTEM/*.txt: each input is a configuration of the system, each output the objects and
// findings that it gives. Run with -rewrite to regenerate.
func TestGolden(t *testing.T) {
	for _, source := range migrate.Sources {
		dir := filepath.Join("testdata", source.Name)
		require.DirExists(t, dir)
		datadriven.Walk(t, dir, func(t *testing.T, path string) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				return render(t, source, d.Input)
			})
		})
	}
}

func render(t require.TestingT, source migrate.Source, input string) string {
	objects, findings := convert(source, []byte(input))
	var b strings.Builder
	for _, object := range objects {
		raw, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		fmt.Fprintf(&b, "---\n%s", raw)
	}
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s %s %s\n  %s\n", f.Severity, f.Reason, f.Object, f.Field, f.Message)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func convert(source migrate.Source, input []byte) ([]*unstructured.Unstructured, []finding.Finding) {
	var out finding.List
	objects := source.Convert(document.Decode(input, &out), &out)
	return objects, out.Sorted()
}

// TestReasonsAreDocumented: each reason has a row in the document for operators, and each row is of a reason.
func TestReasonsAreDocumented(t *testing.T) {
	code, err := os.ReadFile("finding/reason.go")
	require.NoError(t, err)
	text, err := os.ReadFile("../../docs/operators/migrate.md")
	require.NoError(t, err)
	var defined, documented []string
	for line := range strings.Lines(string(code)) {
		if _, value, ok := strings.Cut(line, `Reason = "`); ok {
			defined = append(defined, strings.Trim(value, "\"\n"))
		}
	}
	_, table, _ := strings.Cut(string(text), "\n## Findings\n")
	for line := range strings.Lines(table) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			documented = append(documented, name[:strings.Index(name, "`")])
		}
	}
	require.ElementsMatch(t, defined, documented)
}
