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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

// cluster has objects. The caller may patch the allowed resources.
func cluster(t *testing.T, allowed []string, objects ...client.Object) *Cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	require.NoError(t, batchv1.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	review := func(ctx context.Context, to client.WithWatch, object client.Object, o ...client.CreateOption) error {
		asked, ok := object.(*unstructured.Unstructured)
		if !ok {
			return to.Create(ctx, object, o...)
		}
		for _, resource := range allowed {
			if got, _, _ := unstructured.NestedString(asked.Object, "spec", "resourceAttributes", "resource"); got == resource {
				return unstructured.SetNestedField(asked.Object, true, "status", "allowed")
			}
		}
		return nil
	}
	return &Cluster{Reader: &answers.Reader{Objects: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).
		WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{Create: review}).Build()}}
}

func unitOf(job string) *v1alpha1.QueueUnit {
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "unit-" + job},
		Spec: v1alpha1.QueueUnitSpec{ConsumerRef: &corev1.ObjectReference{
			APIVersion: "batch/v1", Kind: "Job", Name: job, UID: types.UID(job),
		}},
	}
}

func pod(namespace, name, unit, owner string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if unit != "" {
		p.Annotations = map[string]string{v1alpha1.AnnotationRelatedQueueUnit: unit}
	}
	if owner != "" {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: owner, UID: types.UID(owner)}}
	}
	return p
}

// Pods of a job name its unit or are owned by the job, and are of its namespace.
func TestPods(t *testing.T) {
	c := cluster(t, nil, pod("a", "named", "a/unit-x", ""), pod("a", "owned", "", "x"), pod("a", "other", "a/unit-y", "y"),
		pod("b", "elsewhere", "a/unit-x", "x"), pod("a", "alone", "", ""))
	pods, more, err := c.Pods(t.Context(), unitOf("x"))
	require.NoError(t, err)
	require.False(t, more)
	names := []string{}
	for i := range pods {
		names = append(names, pods[i].Name)
	}
	require.ElementsMatch(t, []string{"named", "owned"}, names)
}

func TestYAML(t *testing.T) {
	c := cluster(t, nil, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}})
	text, err := c.YAML(t.Context(), unitOf("x"))
	require.NoError(t, err)
	require.Contains(t, text, "kind: QueueUnit")
	require.Contains(t, text, "kind: Job\nmetadata:")
	text, err = c.YAML(t.Context(), unitOf("gone"))
	require.NoError(t, err)
	require.Contains(t, text, "# The job does not exist.")
}

func TestRights(t *testing.T) {
	for want, allowed := range map[Rights][]string{
		{}:                            nil,
		{Owner: true}:                 {"jobs"},
		{Operator: true}:              {"queueunits"},
		{Owner: true, Operator: true}: {"jobs", "queueunits"},
	} {
		got, err := cluster(t, allowed).Rights(t.Context(), unitOf("x"))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// counted counts the questions that Cached passes on.
type counted struct {
	Source
	asked, failures int
}

func (c *counted) Records(context.Context, *answers.RecordQuery) (*answers.Records, error) {
	if c.asked++; c.failures > 0 {
		c.failures--
		return nil, errors.New("no answer")
	}
	return &answers.Records{}, nil
}

// A long answer is kept for some seconds, and an error is not.
func TestCached(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1000, 0))
	source := &counted{failures: 1}
	cached := &Cached{Source: source, Clock: clock}
	for _, step := range []struct {
		query answers.RecordQuery
		later time.Duration
		fails bool
		asked int
	}{
		{asked: 1, fails: true}, {asked: 2}, {asked: 2}, {query: answers.RecordQuery{Namespace: "a"}, asked: 3}, {asked: 3},
		{later: fresh - 1, asked: 3}, {later: 1, asked: 4},
		{query: answers.RecordQuery{Job: "x"}, asked: 5}, {query: answers.RecordQuery{Job: "x"}, asked: 6},
	} {
		clock.Step(step.later)
		_, err := cached.Records(t.Context(), &step.query)
		require.Equal(t, step.fails, err != nil)
		require.Equal(t, step.asked, source.asked)
	}
	require.Len(t, cached.kept, 1, "an answer that is no longer shown is not kept")
}
