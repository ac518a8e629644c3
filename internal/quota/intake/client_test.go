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

package intake

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	eqfake "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/generated/clientset/versioned/fake"

	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/ancestry"
)

// next returns the next event that is no bookmark, as its type and the name of its quota.
func next(t *testing.T, w watch.Interface) string {
	t.Helper()
	for e := range w.ResultChan() {
		if e.Type != watch.Bookmark {
			q := e.Object.(*v1alpha1.ElasticQuota)
			return string(e.Type) + " " + q.Namespace + "/" + q.Name
		}
	}
	return "closed"
}

func TestListsAndWatchesHaveNoQuotaThatIsWithheld(t *testing.T) {
	api, fake := watch.NewFakeWithChanSize(10, false), eqfake.NewSimpleClientset(
		quota("n", "a", "b", 1), quota("n", "b", "a", 1), quota("n", "c", "", 1), quota("m", "c", "", 2))
	fake.PrependWatchReactor("elasticquotas", clienttesting.DefaultWatchReactor(api, nil))
	var told []map[types.NamespacedName]ancestry.Reason
	client := NewClient(fake, func(withheld map[types.NamespacedName]ancestry.Reason) { told = append(told, withheld) })
	all := client.SchedulingV1alpha1().ElasticQuotas(metav1.NamespaceAll)

	list, err := all.List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "c", list.Items[0].Name)
	require.Equal(t, map[types.NamespacedName]ancestry.Reason{
		key("n", "a"): ancestry.OwnAncestor, key("n", "b"): ancestry.OwnAncestor, key("m", "c"): ancestry.NameTaken,
	}, told[0])

	_, err = all.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: ptr.To(true)})
	require.Error(t, err, "a streamed list has no order")
	w, err := all.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)

	api.Modify(quota("n", "b", "c", 1))
	require.Equal(t, "ADDED n/b", next(t, w), "the parent comes first")
	require.Equal(t, "ADDED n/a", next(t, w), "nobody has written it")
	api.Delete(quota("n", "c", "", 1))
	require.Equal(t, "DELETED n/c", next(t, w))
	require.Equal(t, "ADDED m/c", next(t, w), "the other one of that name remains")
	api.Modify(quota("m", "c", "a", 2))
	require.Equal(t, "DELETED n/a", next(t, w), "children go first")
	require.Equal(t, "DELETED n/b", next(t, w))
	require.Equal(t, "DELETED m/c", next(t, w))
	api.Modify(quota("m", "c", "", 2))
	require.Equal(t, []string{"ADDED m/c", "ADDED n/b", "ADDED n/a"}, []string{next(t, w), next(t, w), next(t, w)})

	api.Error(&metav1.Status{Reason: metav1.StatusReasonExpired})
	e := <-w.ResultChan()
	require.Equal(t, watch.Bookmark, e.Type)
	require.Equal(t, watch.Error, (<-w.ResultChan()).Type)
	w.Stop()
	require.Equal(t, "closed", next(t, w))
}

func TestOneNamespaceIsReadAsItIs(t *testing.T) {
	client := NewClient(eqfake.NewSimpleClientset(quota("n", "a", "a", 1)), nil)
	q, err := client.SchedulingV1alpha1().ElasticQuotas("n").Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "a", q.Name)
}
