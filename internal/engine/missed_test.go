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

package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

// metadataOf lists the metadata of what a client of whole objects lists.
type metadataOf struct{ dynamic.Interface }

type metadataList struct {
	metadata.ResourceInterface
	objects dynamic.ResourceInterface
}

func (m metadataOf) Resource(resource schema.GroupVersionResource) metadata.Getter {
	return metadataList{objects: m.Interface.Resource(resource)}
}

func (m metadataList) Namespace(string) metadata.ResourceInterface { return m }

func (m metadataList) List(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list, err := m.objects.List(ctx, o)
	if err != nil {
		return nil, err
	}
	out := &metav1.PartialObjectMetadataList{}
	for i := range list.Items {
		u := &list.Items[i]
		out.Items = append(out.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		}})
	}
	return out, nil
}

// All writes of the last leader count before the watch brings them (I1), and known objects are not read again.
func TestALeaderReadsWhatItMissed(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	r.queue(testQuota)
	admitted, fresh := r.unit("admitted", 4), r.unit("remade", 1)
	gone := r.unit("gone", 1)
	r.unit("known", 4)
	r.step()
	held := map[string]any{"phase": "Dequeued", "attempts": int64(1), "admissions": []any{
		map[string]any{"name": "main", "replicas": int64(4), "resources": map[string]any{"cpu": "4"}},
	}}
	r.api.setStatus(admitted, held)
	remade := r.api.get(fresh)
	r.api.delete(fresh)
	r.api.delete(gone)
	remade.SetUID("another")
	r.api.create(remade)
	var read []string
	missed, err := r.engine.missedUnits(context.Background(), func(f func()) error { f(); return nil })
	require.NoError(t, err)
	for _, u := range missed {
		read = append(read, u.Key())
	}
	require.ElementsMatch(t, []string{admitted, fresh}, read)

	r.lead()
	require.Empty(t, r.decisions(), "what the last leader gave away is given away again")
	require.Equal(t, "cpu: 4", r.outstanding(testQuota))
	r.sound()
}

// A unit that goes between the list and the reading is none.
func TestAUnitThatGoesMeanwhileIsNotMissed(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	key := r.unit("brief", 4)
	missed, err := r.engine.missedUnits(context.Background(), func(f func()) error {
		f()
		r.api.delete(key)
		return nil
	})
	require.NoError(t, err)
	require.Empty(t, missed)
}
