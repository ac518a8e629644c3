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

package pages

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// words are the functions of templates.
var words = template.FuncMap{
	"time":      func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"iso":       func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"lower":     strings.ToLower,
	"path":      url.PathEscape,
	"plural":    plural,
	"thousands": thousands,
	"int":       func(n int32) int { return int(n) },
	// times that an event was seen. Some events count in their series, and some not at all.
	"times": func(e corev1.Event) int32 {
		if e.Series != nil {
			return e.Series.Count
		}
		return max(e.Count, 1)
	},
	"seen": func(e corev1.Event) time.Time { return lastSeen(&e) },
	// depth of a style: deeper levels are not indented any further.
	"depth":  func(n int) int { return min(n, 4) },
	"listed": func(all ...string) []string { return all },
	"list":   links,
	// firstSteps has the times of the table.
	"firstSteps": func(rows []quotaRow) []stepRow {
		for i := range rows {
			if len(rows[i].Resources) > 0 {
				return rows[i].Resources[0].Steps
			}
		}
		return nil
	},
	// withOf has the quota itself in the table.
	"withOf": func(b *quotaBody) quotasBody {
		with := b.quotasBody
		with.Rows = append([]quotaRow{b.Of}, b.Rows...)
		return with
	},
}

// link is an entry of a navigation.
type link struct{ Path, Name string }

func links(pairs ...string) (all []link) {
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, link{pairs[i], pairs[i+1]})
	}
	return all
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", thousands(n), noun)
}

// thousands groups digits.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func age(now, since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(since), 0))
}

// amounts are resources in the order of their names.
func amounts(list corev1.ResourceList) string {
	parts := make([]string, 0, len(list))
	for _, name := range names(list) {
		amount := list[name]
		parts = append(parts, amount.String()+" "+string(name))
	}
	return strings.Join(parts, ", ")
}

// names of resources: cpu and memory first.
func names(lists ...corev1.ResourceList) (all []corev1.ResourceName) {
	for _, list := range lists {
		for name := range list {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	rank := func(n corev1.ResourceName) string {
		switch n {
		case corev1.ResourceCPU:
			return "0"
		case corev1.ResourceMemory:
			return "1"
		default:
			return "2" + string(n)
		}
	}
	slices.SortFunc(all, func(a, b corev1.ResourceName) int { return strings.Compare(rank(a), rank(b)) })
	return all
}

// number of a resource as people write it, rounded.
func number(name corev1.ResourceName, n float64) string {
	if strings.HasSuffix(string(name), "memory") || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
		for _, unit := range []struct {
			size float64
			name string
		}{{1 << 40, "Ti"}, {1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}} {
			if n >= unit.size {
				return trimmed(n/unit.size) + unit.name
			}
		}
	}
	return trimmed(n)
}

func trimmed(n float64) string {
	if n >= 100 {
		return thousands(int(n + 0.5))
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.1f", n), "0"), ".")
}
