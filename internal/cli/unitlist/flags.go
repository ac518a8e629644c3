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

package unitlist

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
)

// Chunk is the number of units of one request, as of kubectl get.
const Chunk = 500

// Flags select units.
type Flags struct {
	Queue, Selector string
	States          []string
	// All namespaces that the caller may see.
	All bool
	// OfQueue names the flag of the queue.
	OfQueue string
}

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	if f.OfQueue == "" {
		f.OfQueue = "queue"
	}
	fs := cmd.Flags()
	fs.StringVar(&f.Queue, f.OfQueue, "", "jobs of this queue, in all namespaces that you may see unless -n is set")
	fs.StringVarP(&f.Selector, "selector", "l", "", "jobs with these labels, for example team=a,app!=b")
	fs.StringSliceVar(&f.States, "state", nil, "jobs in these states: "+strings.ToLower(strings.Join(states(), ", ")))
	fs.BoolVarP(&f.All, "all-namespaces", "A", false, "jobs of all namespaces that you may see")
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(states(), cobra.ShellCompDirectiveNoFileComp))
}

func states() []string {
	names := make([]string, 0, len(unitstate.All()))
	for _, s := range unitstate.All() {
		names = append(names, string(s))
	}
	return names
}

// Given says whether a flag selects anything.
func (f *Flags) Given() bool { return f.Queue != "" || f.Selector != "" || len(f.States) > 0 || f.All }

// Query of the flags. Without states it selects jobs that have not ended.
func (f *Flags) Query(config *genericclioptions.ConfigFlags) (*Query, error) {
	q := &Query{Queue: f.Queue, Chunk: Chunk}
	var err error
	if q.Labels, err = labels.Parse(f.Selector); err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	for _, name := range f.States {
		i := slices.IndexFunc(unitstate.All(), func(s unitstate.State) bool { return strings.EqualFold(string(s), name) })
		if i < 0 {
			return nil, fmt.Errorf("--state: %q is none of %s", name, strings.ToLower(strings.Join(states(), ", ")))
		}
		q.States = append(q.States, unitstate.All()[i])
	}
	if len(f.States) == 0 {
		q.States = slices.DeleteFunc(unitstate.All(), unitstate.State.Over)
	}
	named := config.Namespace != nil && *config.Namespace != ""
	if f.All || f.Queue != "" && !named {
		return q, nil
	}
	q.Namespace, _, err = config.ToRawKubeConfigLoader().Namespace()
	return q, err
}
