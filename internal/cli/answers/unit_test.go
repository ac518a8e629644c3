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

package answers

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// A job is one request, whatever else is in its namespace. A second one looks for a unit of that name.
func TestUnitOfAJob(t *testing.T) {
	unit := func(name, kind, job string) client.Object {
		u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name}}
		if kind != "" {
			u.Spec.ConsumerRef = &corev1.ObjectReference{Kind: kind, Name: job}
		}
		return u
	}
	units := []client.Object{
		unit("train", "Job", "train"), unit("py-train", "PyTorchJob", "train"), unit("py-only", "PyTorchJob", "only"),
		unit("bare", "", ""), unit("copy", "Job", "gone"),
	}
	for i := range 3 * page {
		units = append(units, unit(fmt.Sprint("u", i), "Job", fmt.Sprint("other", i)))
	}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	var requests int
	earlier := false
	r := Reader{Objects: fake.NewClientBuilder().WithScheme(scheme).WithObjects(units...).
		WithIndex(&v1alpha1.QueueUnit{}, fieldJob, func(o client.Object) []string {
			if ref := o.(*v1alpha1.QueueUnit).Spec.ConsumerRef; ref != nil {
				return []string{ref.Name}
			}
			return nil
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
				requests++
				o := client.ListOptions{}
				if o.ApplyOptions(opts); earlier && o.FieldSelector != nil {
					return apierrors.NewBadRequest("field label not supported: " + fieldJob)
				}
				return c.List(ctx, into, opts...)
			},
			Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption,
			) error {
				requests++
				return c.Get(ctx, key, into, o...)
			},
		}).Build()}
	for _, test := range []struct {
		job, want, fails string
		requests         int
	}{
		{job: "job/train", want: "train", requests: 1},
		{job: "pytorchjob/train", want: "py-train", requests: 1},
		{job: "train", fails: "choose one of: pytorchjob/train, job/train", requests: 1},
		{job: "only", want: "py-only", requests: 1},
		{job: "bare", want: "bare", requests: 2},
		{job: "py-only", want: "py-only", requests: 2},     // the name of the unit
		{job: "queueunit/bare", want: "bare", requests: 1}, // as lists show it
		{job: "queueunit/none", fails: "stands for job", requests: 1},
		{job: "none", fails: "stands for job", requests: 2},
		{job: "rayjob/train", fails: "stands for job", requests: 1},
		{job: "", fails: "stands for job", requests: 1},
	} {
		for _, earlier = range []bool{false, true} {
			requests = 0
			u, err := r.Unit(t.Context(), "research", test.job)
			if !earlier {
				require.Equal(t, test.requests, requests, test.job)
			}
			if test.fails != "" {
				require.ErrorContains(t, err, test.fails, test.job)
				continue
			}
			require.NoError(t, err, test.job)
			require.Equal(t, test.want, u.Name, test.job)
		}
	}
}
