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

package jobs

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

// ErrConflict: the values to write into pods differ from what their template says already.
var ErrConflict = errors.New("the pod template says otherwise")

// updateRecord names the additions of an update to one template. The owner of the job can forge it, and somebody else
// may demand labels of the owner's templates. So an addition is removed only if a check has asked for it as well.
type updateRecord struct {
	Labels       []string         `json:"labels,omitempty"`
	Annotations  []string         `json:"annotations,omitempty"`
	NodeSelector []string         `json:"nodeSelector,omitempty"`
	Tolerations  []map[string]any `json:"tolerations,omitempty"`
}

// ours says whether a key has a meaning to the queue or to Koordinator, or puts pods into a group. No check writes it.
func ours(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	if key == podgroup.LabelName || key == podgroup.AnnotationTotal || slices.Contains(gangLabels, key) {
		return true
	}
	return domain == "koord-queue" || domain == v1alpha1.GroupName || domain == "koordinator.sh" ||
		strings.HasSuffix(domain, ".koordinator.sh") || slices.Contains(v1alpha1.QuotaLabels[:], key)
}

// update writes an update and returns its record. A value that the template has already is not recorded, since it
// stays.
func (s *podSetAt) update(u *podupdate.Update, r *updateRecord) (*updateRecord, error) {
	if u.Empty() {
		return r, nil
	}
	if len(s.Template) == 0 || s.Early {
		return nil, fmt.Errorf("%w: %s has no pod template that could be changed", podtemplate.ErrMalformed, s.TemplatePath())
	}
	if err := undone(s, u); err != nil {
		return nil, err
	}
	if r == nil {
		r = &updateRecord{}
	}
	labels, labelsPath := s.MetadataAt(jobkind.LabelsKey)
	annotations, annotationsPath := s.MetadataAt(jobkind.AnnotationsKey)
	for _, to := range []struct {
		what   string
		object map[string]any
		path   jobkind.Path
		values map[string]string
		record *[]string
	}{
		{"label", labels, labelsPath, u.Labels, &r.Labels},
		{"annotation", annotations, annotationsPath, u.Annotations, &r.Annotations},
		{"nodeSelector", s.Object, s.Template.Child("spec", "nodeSelector"), u.NodeSelector, &r.NodeSelector},
	} {
		added, err := setAll(to.object, to.path, to.values)
		if err != nil {
			return nil, fmt.Errorf("%s: %s %w", s.TemplatePath(), to.what, err)
		}
		for _, key := range added {
			if !slices.Contains(*to.record, key) {
				*to.record = append(*to.record, key)
			}
		}
	}
	return r, s.tolerate(u.Tolerations, r)
}

// undone reports an update that the operator of a job would undo. The operator applies the child once more when it
// resumes the job. Its node selectors or tolerations replace all of them (x-kubernetes-map-type and list-type atomic),
// while labels and annotations stay. Pods without an update would be held back without end.
func undone(s *podSetAt, u *podupdate.Update) error {
	if len(s.Path) == 0 || s.Path[0] != jobkind.ChildKey {
		return nil
	}
	lost := func(what string) error {
		return fmt.Errorf("%s: %w: its operator replaces %s when it resumes the job, name what the checks ask for in the job",
			s.TemplatePath(), ErrConflict, what)
	}
	spec := s.Template.Child("spec")
	selected := jobkind.StringMap(jobkind.Lookup(s.Object, spec.Child("nodeSelector")))
	for key := range u.NodeSelector {
		if _, there := selected[key]; !there && len(selected) > 0 {
			return lost("nodeSelector")
		}
	}
	tolerated, _ := jobkind.Lookup(s.Object, spec.Child("tolerations")).([]any)
	for i := range u.Tolerations {
		one, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&u.Tolerations[i])
		if err != nil {
			return fmt.Errorf("%w: %w", podtemplate.ErrMalformed, err)
		}
		there := slices.ContainsFunc(tolerated, func(of any) bool { return sameToleration(of, one) })
		if !there && len(tolerated) > 0 {
			return lost("tolerations")
		}
	}
	return nil
}

// setAll sets values that are not there, and returns their keys, sorted.
func setAll(object map[string]any, at jobkind.Path, values map[string]string) (added []string, err error) {
	if len(values) == 0 {
		return nil, nil
	}
	have := jobkind.StringMap(jobkind.Lookup(object, at))
	if have == nil {
		have = map[string]string{}
	}
	for key, value := range values {
		switch old, there := have[key]; {
		case ours(key):
			return nil, fmt.Errorf("%q: %w", key, ErrNotAddable)
		case there && old != value:
			return nil, fmt.Errorf("%q: %w: %q, and not %q", key, ErrConflict, old, value)
		case !there:
			have[key] = value
			added = append(added, key)
		}
	}
	if err := unstructured.SetNestedStringMap(object, have, at...); err != nil {
		return nil, fmt.Errorf("%w: %w", podtemplate.ErrMalformed, err)
	}
	slices.Sort(added)
	return added, nil
}

// tolerate adds the tolerations that are not there.
func (s *podSetAt) tolerate(tolerations []corev1.Toleration, r *updateRecord) error {
	if len(tolerations) == 0 {
		return nil
	}
	at := s.Template.Child("spec", "tolerations")
	have, _ := jobkind.Lookup(s.Object, at).([]any)
	have = slices.Clone(have)
	for i := range tolerations {
		one, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&tolerations[i])
		if err != nil {
			return fmt.Errorf("%w: %w", podtemplate.ErrMalformed, err)
		}
		if !slices.ContainsFunc(have, func(of any) bool { return sameToleration(of, one) }) {
			have, r.Tolerations = append(have, one), append(r.Tolerations, one)
		}
	}
	if err := unstructured.SetNestedSlice(s.Object, have, at...); err != nil {
		return fmt.Errorf("%w: %w", podtemplate.ErrMalformed, err)
	}
	return nil
}

// sameToleration compares as text: numbers that were read from a record are of another type.
func sameToleration(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// takeBack is the inverse of update, of what is recorded and was asked for.
func (s *podSetAt) takeBack(r *updateRecord, asked []podupdate.Update) {
	if r == nil || len(s.Template) == 0 {
		return
	}
	labels, labelsPath := s.MetadataAt(jobkind.LabelsKey)
	annotations, annotationsPath := s.MetadataAt(jobkind.AnnotationsKey)
	var tolerations []corev1.Toleration
	for i := range asked {
		dropAll(labels, labelsPath, r.Labels, asked[i].Labels)
		dropAll(annotations, annotationsPath, r.Annotations, asked[i].Annotations)
		dropAll(s.Object, s.Template.Child("spec", "nodeSelector"), r.NodeSelector, asked[i].NodeSelector)
		tolerations = append(tolerations, asked[i].Tolerations...)
	}
	at := s.Template.Child("spec", "tolerations")
	have, _ := jobkind.Lookup(s.Object, at).([]any)
	if len(r.Tolerations) == 0 || len(have) == 0 {
		return
	}
	have = slices.Clone(have)
	for _, added := range r.Tolerations {
		if !slices.ContainsFunc(tolerations, func(of corev1.Toleration) bool { return sameToleration(of, added) }) {
			continue
		}
		if i := slices.IndexFunc(have, func(of any) bool { return sameToleration(of, added) }); i >= 0 {
			have = slices.Delete(have, i, i+1)
		}
	}
	if len(have) == 0 {
		unstructured.RemoveNestedField(s.Object, at...)
		return
	}
	_ = unstructured.SetNestedSlice(s.Object, have, at...) // the path was read just now
}

// dropAll takes those of the keys out that have the value that was asked for, and leaves no empty map behind.
func dropAll(object map[string]any, at jobkind.Path, keys []string, asked map[string]string) {
	have := jobkind.StringMap(jobkind.Lookup(object, at))
	if len(keys) == 0 || have == nil {
		return
	}
	for _, key := range keys {
		if value, ok := asked[key]; ok && have[key] == value {
			delete(have, key)
		}
	}
	if len(have) == 0 {
		unstructured.RemoveNestedField(object, at...)
		return
	}
	_ = unstructured.SetNestedStringMap(object, have, at...) // the path was read just now
}
