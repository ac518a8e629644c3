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

package runner

import (
	"io"
	"runtime"
	"strings"
)

// Setting is what all measurements have in common. Dir is required.
type Setting struct {
	// Dir is the work directory; it must not exist or be empty. Bin is where the binaries are; "" means bin/.
	Dir, Bin string
	// Workers bounds the requests of this process at once; 0 means 32.
	Workers int
	Profile Profile
	// Audit keeps an audit log of all writes in the work directory, and has the report say who writes what.
	Audit bool
	// Progress takes lines about what happens; Terminal says that a line can be rewritten.
	Progress io.Writer
	Terminal bool
}

// begin fills in what was left out, and opens the screen.
func (s *Setting) begin() *screen {
	if s.Workers <= 0 {
		s.Workers = 32
	}
	if s.Progress == nil {
		s.Progress = io.Discard
	}
	return newScreen(s.Progress, s.Terminal)
}

// in is the same for a control plane in another work directory.
func (s Setting) in(dir string) Setting {
	s.Dir = dir
	return s
}

// Machine is what the figures of a report are to be judged by.
type Machine struct {
	Versions map[string]string `json:"versions"`
	Cores    int               `json:"cores"`
	// LoadAverages are those at the beginning and at the end.
	LoadAverages []string `json:"loadAverages"`
}

func (r *run) machine() Machine {
	return Machine{Versions: r.versions(), Cores: runtime.NumCPU(), LoadAverages: r.loads}
}

func (m *Machine) load() string { return strings.Join(m.LoadAverages, ", then ") }
