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

package scheduler

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	fwktype "k8s.io/kube-scheduler/framework"

	koordclientset "github.com/koordinator-sh/koordinator/pkg/client/clientset/versioned"
)

// clients are what DefaultPreBind takes from its handle.
type clients struct {
	fwktype.Handle
	kube clientset.Interface
}

func (c clients) ClientSet() clientset.Interface                 { return c.kube }
func (c clients) KoordinatorClientSet() koordclientset.Interface { return nil }

func TestAWriteIsCancelledAsTheSchedulerEnds(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	kube := fake.NewClientset()
	kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		end()
		return true, nil, context.Canceled
	})
	plugin, err := newPreBind(ctx, nil, clients{kube: kube})
	require.NoError(t, err)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod"}}
	changed := pod.DeepCopy()
	changed.Annotations = map[string]string{"a": "b"}
	status := plugin.(preBind).ApplyPatch(ctx, nil, pod, changed)
	require.ErrorIs(t, status.AsError(), context.Canceled)
}
