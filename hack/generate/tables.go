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
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/koord-jobqueue/koord-jobqueue/hack/generate/pictures"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/reasons"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/features"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

const (
	tableStart = "<!-- generate:"
	tableEnd   = "<!-- end generate -->"
)

// tables renders each table by the name that documents refer to it by.
func tables(crds []definition) map[string]string {
	out := map[string]string{}
	out["phases"] = phaseTable()
	out["conditions"] = conditionTable()
	out["reasons"] = reasonList()
	out["kinds"] = kindTable()
	out["former-keys"] = formerKeyTable()
	out["alias-keys"] = aliasKeyTable()
	out["phase-readings"] = readingTable()
	out["metrics"], out["metrics-of-libraries"] = metrics.MarkdownTable(false), metrics.MarkdownTable(true)
	out["feature-gates"] = gateTable(features.Definitions())
	out["commands"] = commandList()
	out["borrowing"] = pictures.BorrowingTable()
	for _, d := range crds {
		v := d.crd.Spec.Versions[0]
		kind := strings.ToLower(d.crd.Spec.Names.Kind)
		for _, part := range []string{"spec", "status"} {
			s := v.Schema.OpenAPIV3Schema.Properties[part]
			out[kind+"-"+part] = fieldTable(part, &s)
		}
		out[kind+"-columns"] = columnTable(v.AdditionalPrinterColumns)
		out[kind+"-rules"] = ruleTable(v.Schema.OpenAPIV3Schema)
	}
	return out
}

// gateTable is the table of feature gates.
func gateTable(gates []features.Definition) string {
	var b strings.Builder
	b.WriteString("| gate | stage | default | on | off |\n|---|---|---|---|---|\n")
	for i := range gates {
		d := &gates[i]
		byDefault := map[bool]string{true: "on", false: "off"}[d.Spec.Default]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", d.Name, d.Stage(), byDefault, oneLine(d.On), oneLine(d.Off))
	}
	return b.String()
}

// phaseTable is the table of the life of a unit: rows that share all but the phase before are one.
func phaseTable() string {
	var b strings.Builder
	b.WriteString("| from | to | when | written by |\n|---|---|---|---|\n")
	type change struct {
		to   unit.Phase
		when string
	}
	var order []change
	from, by := map[change][]string{}, map[change][]string{}
	for _, t := range unit.Transitions() {
		c := change{t.To, t.When}
		if from[c] == nil {
			order = append(order, c)
			for _, w := range t.By {
				by[c] = append(by[c], string(w))
			}
		}
		from[c] = append(from[c], phaseName(t.From))
	}
	for _, c := range order {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(from[c], ", "), phaseName(c.to), oneLine(c.when),
			strings.Join(by[c], ", "))
	}
	return b.String()
}

// conditionTable says who gives a condition a status, and with which reasons.
func conditionTable() string {
	var b strings.Builder
	b.WriteString("| condition | status | written by | reasons |\n|---|---|---|---|\n")
	for _, r := range unitcondition.Table() {
		why := r.Why
		if r.Reasons != nil {
			why = "`" + strings.Join(r.Reasons, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Type, r.Status, r.By, oneLine(why))
	}
	return b.String()
}

// reasonList lists the meaning of each reason and, in italics, the advice.
func reasonList() string {
	var b strings.Builder
	for _, r := range reasons.Table() {
		fmt.Fprintf(&b, "- **`%s`**: %s *%s*\n", r.Reason, r.Meaning, r.Advice)
	}
	return b.String()
}

// formerKeyTable says what becomes of each key of the stand-alone Koord-Queue.
func formerKeyTable() string {
	var b strings.Builder
	b.WriteString("| object | key | fate | remark |\n|---|---|---|---|\n")
	for _, r := range formerkey.Table() {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", r.Object, r.Key, r.Fate, r.Use)
	}
	return b.String()
}

// aliasKeyTable says what becomes of each key of other systems where an alias names the queue of the job.
func aliasKeyTable() string {
	var b strings.Builder
	b.WriteString("| system | key | fate | remark |\n|---|---|---|---|\n")
	for _, r := range alias.Rows() {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", r.System, r.Key, r.Fate, r.Use)
	}
	return b.String()
}

func phaseName(p unit.Phase) string {
	switch p {
	case unit.PhaseNone:
		return "none"
	case unit.PhaseOther:
		return "any other"
	default:
		return "`" + string(p) + "`"
	}
}

// readingTable says how each phase reads.
func readingTable() string {
	var b strings.Builder
	b.WriteString("| phase | waits | holds quota | its pods may go | over | written by |\n|---|---|---|---|---|---|\n")
	for _, p := range unit.Phases() {
		fmt.Fprintf(&b, "| %s |", phaseName(p))
		for _, is := range []bool{p.Waits(), p.Holds(), p.Releases(), p.Terminal()} {
			fmt.Fprintf(&b, " %s |", map[bool]string{true: "yes"}[is])
		}
		fmt.Fprintf(&b, " %s |\n", strings.Join(writersOf(p), ", "))
	}
	return b.String()
}

// writersOf a phase are those that the table of transitions lets write it.
func writersOf(p unit.Phase) []string {
	var writers []string
	for _, t := range unit.Transitions() {
		for _, w := range t.By {
			if t.To == p && !slices.Contains(writers, string(w)) {
				writers = append(writers, string(w))
			}
		}
	}
	return writers
}

func fieldTable(root string, s *apiextensionsv1.JSONSchemaProps) string {
	var b strings.Builder
	b.WriteString("| field | type | meaning |\n|---|---|---|\n")
	walkFields(root, s, func(path string, f *apiextensionsv1.JSONSchemaProps) {
		name := path[strings.LastIndex(path, ".")+1:]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.TrimPrefix(path, root+"."), typeName(f), meaning(name, f.Description))
	})
	return b.String()
}

// walkFields visits the fields below s in order of their paths. It does not descend into types of
// Kubernetes itself, which have their own documentation.
func walkFields(path string, s *apiextensionsv1.JSONSchemaProps, visit func(string, *apiextensionsv1.JSONSchemaProps)) {
	walk(path, s, foreign, visit)
}

func walk(
	path string, s *apiextensionsv1.JSONSchemaProps, without map[string]bool,
	visit func(string, *apiextensionsv1.JSONSchemaProps),
) {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		f := s.Properties[name]
		p := path + "." + name
		visit(p, &f)
		if without[name] {
			continue
		}
		walk(p, &f, without, visit)
		if f.Items != nil && f.Items.Schema != nil {
			walk(p+"[]", f.Items.Schema, without, visit)
		}
	}
}

var foreign = map[string]bool{
	"conditions": true, "children": true, "labelSelector": true, "consumerRef": true,
	"tolerations": true, "template": true,
}

func typeName(f *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case f.XIntOrString:
		return "quantity"
	case f.Type == "array" && f.Items != nil && f.Items.Schema != nil:
		return "list of " + typeName(f.Items.Schema)
	case f.AdditionalProperties != nil && f.AdditionalProperties.Schema != nil:
		return "map to " + typeName(f.AdditionalProperties.Schema)
	case f.Format == "date-time":
		return "time"
	case f.Format != "" && f.Type == "integer":
		return f.Format
	case f.Type == "":
		return "any"
	}
	return f.Type
}

func columnTable(columns []apiextensionsv1.CustomResourceColumnDefinition) string {
	var b strings.Builder
	b.WriteString("| column | shows |\n|---|---|\n")
	for _, c := range columns {
		wide := ""
		if c.Priority > 0 {
			wide = " (with `-o wide`)"
		}
		fmt.Fprintf(&b, "| %s | `%s`%s |\n", c.Name, c.JSONPath, wide)
	}
	return b.String()
}

func ruleTable(s *apiextensionsv1.JSONSchemaProps) string {
	var b strings.Builder
	b.WriteString("| at | refused with |\n|---|---|\n")
	add := func(path string, f *apiextensionsv1.JSONSchemaProps) {
		for _, r := range f.XValidations {
			fmt.Fprintf(&b, "| `%s` | %s |\n", path, oneLine(r.Message))
		}
		if holdsAmounts(f) {
			fmt.Fprintf(&b,
				"| `%s` | *should match* for a text, *should be greater than or equal to 0* for a number: amounts must be "+
					"quantities that are not negative, with an exponent of two digits at most |\n", path)
		}
	}
	add("(object)", s)
	for _, part := range []string{"spec", "status"} {
		f := s.Properties[part]
		add(part, &f)
		walk(part, &f, nil, func(path string, f *apiextensionsv1.JSONSchemaProps) {
			add(path, f)
			if f.Items != nil && f.Items.Schema != nil {
				add(path+"[]", f.Items.Schema)
			}
		})
	}
	return b.String()
}

// meaning is the comment of a field, without what its column says already.
func meaning(name, comment string) string {
	text := oneLine(comment)
	for _, lead := range []string{name + " is ", name + ": "} {
		if rest, found := strings.CutPrefix(text, lead); found {
			return rest
		}
	}
	return text
}

func oneLine(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}

// rewriteTables replaces every marked section of the Markdown files below dir.
func rewriteTables(dir string, tables map[string]string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text, err := replaceTables(string(old), tables)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if bytes.Equal(old, []byte(text)) {
			return nil
		}
		return os.WriteFile(path, []byte(text), 0o644)
	})
}

func replaceTables(text string, tables map[string]string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, tableStart)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, rest, _ := strings.Cut(rest, " -->")
		table, known := tables[name]
		if !known {
			// Another generator owns the section, for example that of the metrics.
			b.WriteString(tableStart + name + " -->")
			text = rest
			continue
		}
		_, after, closed := strings.Cut(rest, tableEnd)
		if !closed {
			return "", fmt.Errorf("section %q has no %q", name, tableEnd)
		}
		b.WriteString(tableStart + name + " -->\n" + table + tableEnd)
		text = after
	}
}
