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

package facts

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/unitlist"
)

// Bounds of what is read for one page.
const (
	// mostObjects are read to find those of one job.
	mostObjects = 2000
	page        = 500
)

// Cluster asks both APIs. The functions are commands of the plugin.
type Cluster struct {
	Reader *answers.Reader
	// Of is the namespace of the caller.
	Of string
	// Tell is the story of a unit, as "why" tells it.
	Tell func(ctx context.Context, u *v1alpha1.QueueUnit) *screen.Story
	// Examine is what "doctor" finds.
	Examine func(ctx context.Context) ([]doctor.Finding, error)
	// Do runs a command that changes something.
	Do func(ctx context.Context, args ...string) (string, error)
}

var _ Source = &Cluster{}

// Namespace implements Source.
func (c *Cluster) Namespace() string { return c.Of }

// Quotas implements Source.
func (c *Cluster) Quotas(ctx context.Context, namespace string) ([]visibility.Quota, error) {
	return c.Reader.Quotas(ctx, namespace)
}

// Queues implements Source.
func (c *Cluster) Queues(ctx context.Context, namespace string) ([]visibility.Queue, error) {
	return c.Reader.Queues(ctx, namespace)
}

// Records implements Source.
func (c *Cluster) Records(ctx context.Context, q *answers.RecordQuery) (*answers.Records, error) {
	return c.Reader.Records(ctx, q)
}

// Line implements Source.
func (c *Cluster) Line(
	ctx context.Context, namespace, queue string, from, limit int,
) (*visibility.WaitingUnitList, error) {
	return answers.LineFrom(ctx, c.Reader, namespace, queue, from, limit)
}

// errEnough ends a list of which enough was read.
var errEnough = errors.New("enough")

// Jobs implements Source. Each page of rows is one request.
func (c *Cluster) Jobs(ctx context.Context, q *unitlist.Query, limit int) (rows []screen.Row, more bool, err error) {
	bounded := *q
	bounded.Chunk = int64(min(limit, unitlist.Chunk))
	err = unitlist.Pages(ctx, c.Reader, &bounded, func(page []screen.Row, next bool) error {
		rows = append(rows, page...)
		if more = next || len(rows) > limit; len(rows) >= limit {
			rows = rows[:limit]
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return rows, more, err
}

// Admitted implements Source.
func (c *Cluster) Admitted(ctx context.Context, namespace string, limit int) ([]v1alpha1.QueueUnit, error) {
	return c.Reader.Admitted(ctx, namespace, limit)
}

// Forecasts implements Source. Without the right to those of all namespaces it asks for those of the caller's.
func (c *Cluster) Forecasts(ctx context.Context, queue string) map[string]*visibility.Forecast {
	found, err := c.Reader.Forecasts(ctx, "", queue)
	if apierrors.IsForbidden(err) && c.Of != "" {
		found, _ = c.Reader.Forecasts(ctx, c.Of, queue)
	}
	return found
}

// Story implements Source.
func (c *Cluster) Story(ctx context.Context, namespace, name string) (*screen.Story, error) {
	u := &v1alpha1.QueueUnit{}
	if err := c.Reader.Objects.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, u); err != nil {
		return nil, err
	}
	return c.Tell(ctx, u), nil
}

// Preemptions implements Source.
func (c *Cluster) Preemptions(
	ctx context.Context, q *answers.PreemptionQuery, dryRun bool,
) (*answers.Preemptions, error) {
	if dryRun {
		return c.Reader.DryRun(ctx, q)
	}
	return c.Reader.Preemptions(ctx, q)
}

// Findings implements Source.
func (c *Cluster) Findings(ctx context.Context) ([]doctor.Finding, error) { return c.Examine(ctx) }

// Run implements Source.
func (c *Cluster) Run(ctx context.Context, args ...string) (string, error) { return c.Do(ctx, args...) }

// Pods implements Source: pods that name the unit, or that the job controls.
func (c *Cluster) Pods(ctx context.Context, u *v1alpha1.QueueUnit) (pods []corev1.Pod, more bool, err error) {
	key := u.Namespace + "/" + u.Name
	more, err = c.each(ctx, u.Namespace, "v1", "Pod", "", func(object *unstructured.Unstructured) error {
		owned := u.Spec.ConsumerRef != nil && u.Spec.ConsumerRef.UID != "" && isOwned(object, u.Spec.ConsumerRef.UID)
		if object.GetAnnotations()[v1alpha1.AnnotationRelatedQueueUnit] != key && !owned {
			return nil
		}
		pod := corev1.Pod{}
		pods = append(pods, pod)
		return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pods[len(pods)-1])
	})
	return pods, more, err
}

func isOwned(object *unstructured.Unstructured, by types.UID) bool {
	for _, owner := range object.GetOwnerReferences() {
		if owner.UID == by {
			return true
		}
	}
	return false
}

// Events implements Source: those of the job and of the unit.
func (c *Cluster) Events(ctx context.Context, u *v1alpha1.QueueUnit) (events []corev1.Event, err error) {
	names := []string{u.Name}
	if ref := u.Spec.ConsumerRef; ref != nil && ref.Name != u.Name {
		names = append(names, ref.Name)
	}
	for _, name := range names {
		selector := fields.OneTermEqualSelector("involvedObject.name", name).String()
		_, err := c.each(ctx, u.Namespace, "v1", "Event", selector, func(object *unstructured.Unstructured) error {
			event := corev1.Event{}
			events = append(events, event)
			return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &events[len(events)-1])
		})
		if err != nil {
			return nil, err
		}
	}
	return events, nil
}

// each object of a kind in a namespace, up to a bound.
func (c *Cluster) each(
	ctx context.Context, namespace, version, kind, selector string, take func(*unstructured.Unstructured) error,
) (more bool, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(version)
	list.SetKind(kind + "List")
	options := []client.ListOption{client.InNamespace(namespace), client.Limit(page)}
	if selector != "" {
		parsed, err := fields.ParseSelector(selector)
		if err != nil {
			return false, err
		}
		options = append(options, client.MatchingFieldsSelector{Selector: parsed})
	}
	for read := 0; read < mostObjects; read += page {
		if err := c.Reader.Objects.List(ctx, list, append(options, client.Continue(list.GetContinue()))...); err != nil {
			return false, err
		}
		for i := range list.Items {
			if err := take(&list.Items[i]); err != nil {
				return false, err
			}
		}
		if list.GetContinue() == "" {
			return false, nil
		}
	}
	return true, nil
}

// YAML implements Source.
func (c *Cluster) YAML(ctx context.Context, u *v1alpha1.QueueUnit) (string, error) {
	unit := u.DeepCopy()
	unit.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("QueueUnit"))
	unit.ManagedFields = nil
	text, err := yaml.Marshal(unit)
	if err != nil || u.Spec.ConsumerRef == nil {
		return string(text), err
	}
	job := &unstructured.Unstructured{}
	job.SetGroupVersionKind(u.Spec.ConsumerRef.GroupVersionKind())
	err = c.Reader.Objects.Get(ctx, types.NamespacedName{Namespace: u.Namespace, Name: u.Spec.ConsumerRef.Name}, job)
	switch {
	case apierrors.IsNotFound(err):
		return string(text) + "---\n# The job does not exist.\n", nil
	case apierrors.IsForbidden(err):
		return string(text) + "---\n# You may not read the job.\n", nil
	case err != nil:
		return "", err
	}
	job.SetManagedFields(nil)
	more, err := yaml.Marshal(job.Object)
	return string(text) + "---\n" + string(more), err
}

// Rights implements Source. The API server says what the caller may.
func (c *Cluster) Rights(ctx context.Context, u *v1alpha1.QueueUnit) (rights Rights, err error) {
	if ref := u.Spec.ConsumerRef; ref != nil {
		kind := ref.GroupVersionKind()
		mapping, err := c.Reader.Objects.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return rights, err
		}
		if rights.Owner, err = c.may(ctx, u.Namespace, kind.Group, mapping.Resource.Resource, ref.Name); err != nil {
			return rights, err
		}
	}
	rights.Operator, err = c.may(ctx, u.Namespace, v1alpha1.GroupName, "queueunits", u.Name)
	return rights, err
}

// may says whether the caller may patch an object.
func (c *Cluster) may(ctx context.Context, namespace, group, resource, name string) (bool, error) {
	attributes := map[string]any{
		"namespace": namespace, "verb": "patch", "group": group, "resource": strings.ToLower(resource), "name": name,
	}
	review := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"resourceAttributes": attributes},
	}}
	review.SetAPIVersion("authorization.k8s.io/v1")
	review.SetKind("SelfSubjectAccessReview")
	if err := c.Reader.Objects.Create(ctx, review); err != nil {
		return false, err
	}
	allowed, _, err := unstructured.NestedBool(review.Object, "status", "allowed")
	return allowed, err
}
