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

package submit

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/condition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/kinds"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// ErrUnknownKind: no descriptor says where an object of this kind has its pods.
var ErrUnknownKind = errors.New("unknown kind of job")

// kind is what the library reads of a descriptor.
type kind struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Suspend    *podset.SuspendRule `json:"suspend"`
	Valid      []podset.ValidRule  `json:"valid"`
	PodSets    []podset.PodSetRule `json:"podSets"`
	Gang       *podset.GangRule    `json:"gang"`
	sets       []podset.Set
	valid      []*podset.Condition
	runs       *podset.Condition
	unless     *podset.Condition
	minimum    []podset.Term
}

// pod is the kind of a pod that nobody owns. The descriptor of the queue is about groups of them.
const pod = `
apiVersion: v1
kind: Pod
podSets:
- name: pod
  path: .spec
  count: [{default: 1}]
  template: .template
`

// daskJob is a kind of the Dask operator that the queue does not know. Its current releases give labels and annotations
// of the object to all pods, so no pod set has metadata of its own.
const daskJob = `
apiVersion: kubernetes.dask.org/v1
kind: DaskJob
podSets:
- {name: job, path: .spec, count: [{default: 1}], template: .job,
   labels: $.metadata.labels, annotations: $.metadata.annotations}
- {name: scheduler, path: .spec.cluster.spec, count: [{default: 1}], template: .scheduler,
   labels: $.metadata.labels, annotations: $.metadata.annotations}
- {name: worker, path: .spec.cluster.spec, count: [{field: .worker.replicas, default: 1}], template: .worker,
   labels: $.metadata.labels, annotations: $.metadata.annotations}
`

// Kind is a description of a kind of jobs.
type Kind struct{ *kind }

// ReadKind reads a description as the configuration of the queue has it. "kubectl jobqueue kinds test" checks one.
// compile gets the text of each expression, and returns nil for an empty text. If compile is nil, expressions may use
// the part of CEL that package condition has.
func ReadKind(text []byte, compile func(text string) (*podset.Condition, error)) (Kind, error) {
	if compile == nil {
		compile = condition.Compile
	}
	k, err := readKind(text, compile)
	if err == nil && (k.APIVersion == "" || k.Kind == "") {
		err = fmt.Errorf("description of a kind: %w: it needs apiVersion and kind", ErrInvalid)
	}
	return Kind{k}, err
}

// readKind reads a descriptor that the queue has checked.
func readKind(text []byte, read func(text string) (*podset.Condition, error)) (*kind, error) {
	k := &kind{}
	if err := yaml.Unmarshal(text, k); err != nil {
		return nil, err
	}
	var failed []error
	compile := func(text string) *podset.Condition {
		c, err := read(text)
		failed = append(failed, err)
		return c
	}
	for i := range k.PodSets {
		k.PodSets[i].Partial = nil // the queue alone shrinks jobs
		k.sets = append(k.sets, podset.Of(&k.PodSets[i], compile))
	}
	for _, v := range k.Valid {
		k.valid = append(k.valid, compile(v.Rule))
	}
	if k.Suspend != nil {
		k.runs = compile(k.Suspend.Unless)
	}
	if k.Gang != nil {
		k.unless, k.minimum = compile(k.Gang.Unless), podset.TermsOf(k.Gang.Minimum)
	}
	return k, errors.Join(failed...)
}

// builtin are the kinds that the queue knows, pods, and DaskJobs.
var builtin = sync.OnceValues(func() ([]*kind, error) {
	names, err := fs.Glob(kinds.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	dask, err := readKind([]byte(daskJob), condition.Compile)
	if err != nil {
		return nil, err
	}
	all := []*kind{dask}
	for _, name := range names {
		text, err := kinds.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if name == "pod.yaml" {
			text = []byte(pod)
		}
		k, err := readKind(text, condition.Compile)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, k)
	}
	return all, nil
})

// kindOf an object is one of those that are described, or a built-in one.
func kindOf(object Object, described []Kind) (*kind, error) {
	version, _ := object["apiVersion"].(string)
	name, _ := object["kind"].(string)
	all, err := builtin()
	if err != nil {
		return nil, err
	}
	is := func(k *kind) bool { return k != nil && k.APIVersion == version && k.Kind == name }
	if i := slices.IndexFunc(described, func(k Kind) bool { return is(k.kind) }); i >= 0 {
		return described[i].kind, nil
	}
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], nil
	}
	return nil, fmt.Errorf("%w: apiVersion %.100q, kind %.100q", ErrUnknownKind, version, name)
}

// gangs says whether a job of the kind can be a gang: it has all its pods at once. Pods of a Workflow come in turn. A
// Deployment or a LeaderWorkerSet runs on while its pods are replaced. The pods of a DaskJob cannot be told apart.
func (k *kind) gangs(job *Job) bool {
	if k.isPod() {
		return job.PodGroup != nil
	}
	return job.PodGroup != nil || k.Suspend != nil && !k.Suspend.KeepsPods
}

// isPod says whether jobs of the kind are single pods.
func (k *kind) isPod() bool { return k.Kind == "Pod" && k.APIVersion == "v1" }
