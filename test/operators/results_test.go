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

package operators_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// results of the cases, by kind, are printed last, and show which cases were tried.
var results = struct {
	sync.Mutex
	Kinds map[string]*kindResult `json:"kinds"`
}{Kinds: map[string]*kindResult{}}

// kindResult counts the cases of one kind. Operator is what made its pods.
type kindResult struct {
	Operator string `json:"operator"`
	Cases    int    `json:"cases"`
	Failed   int    `json:"failed"`
}

// count a case of the kind.
func (k *jobKind) count(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		results.Lock()
		defer results.Unlock()
		r := results.Kinds[k.display()]
		if r == nil {
			r = &kindResult{Operator: k.operator()}
			results.Kinds[k.display()] = r
		}
		r.Cases++
		if t.Failed() {
			r.Failed++
		}
	})
}

// display is the kind as its users write it; of two versions with operators of their own, with the version.
func (k *jobKind) display() string {
	switch k.name {
	case "mpijob":
		return "MPIJob.v1"
	case "mpijob-v2beta1":
		return "MPIJob.v2beta1"
	default:
		return k.owners[len(k.owners)-1]
	}
}

func (k *jobKind) operator() string {
	for _, kinds := range [][]jobKind{standInKinds, gatedKinds[2:]} {
		for i := range kinds {
			if kinds[i].name == k.name {
				return "stand-in"
			}
		}
	}
	return "real"
}

// writeResults for hack/test.sh, which shows them last.
func writeResults() error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	text, err := json.Marshal(&results)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "_artifacts")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "operators.json"), append(text, '\n'), 0o644)
}
