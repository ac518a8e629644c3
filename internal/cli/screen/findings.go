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

package screen

import (
	"fmt"
	"io"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"
)

// Findings writes the faults of an installation, with the remedy of each.
func Findings(out io.Writer, findings []doctor.Finding) error {
	p := &Writer{out: out}
	counts := map[doctor.Severity]int{}
	for _, f := range findings {
		counts[f.Severity]++
		p.Printf("%-8s%s: %s\n", f.Severity, f.Code, Clean(f.Message))
		for line := range strings.Lines(f.Fix) {
			p.Printf("        %s\n", Clean(strings.TrimSuffix(line, "\n")))
		}
	}
	if len(findings) > 0 {
		p.Printf("\n")
	}
	p.Printf("%s, %s, %s\n", number(counts[doctor.Error], "error"), number(counts[doctor.Warning], "warning"),
		number(counts[doctor.Note], "note"))
	return p.err
}

func number(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
