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
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// A list of several pages is printed as one document.
func TestUnitsOfSeveralPages(t *testing.T) {
	pages := map[string]v1alpha1.QueueUnitList{}
	for i, token := range []string{"", "1", "2"} {
		list := v1alpha1.QueueUnitList{}
		list.Items = []v1alpha1.QueueUnit{{ObjectMeta: metav1.ObjectMeta{Name: "u" + token}}}
		if i < 2 {
			list.Continue = []string{"1", "2"}[i]
		}
		pages[token] = list
	}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	r := Reader{Objects: interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
			o := client.ListOptions{}
			o.ApplyOptions(opts)
			require.NotZero(t, o.Limit)
			page := pages[o.Continue]
			page.DeepCopyInto(into.(*v1alpha1.QueueUnitList))
			return nil
		},
	})}
	units, err := r.Units(t.Context(), "")
	require.NoError(t, err)
	var names []string
	for i := range units {
		names = append(names, units[i].Name)
	}
	require.Equal(t, []string{"u", "u1", "u2"}, names)
}

// Forecasts of a namespace, of a queue, or of all are one question each.
func TestForecasts(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "ForecastList", "apiVersion": "visibility.koord-queue.x-k8s.io/v1alpha1",
			"items": [{"metadata": {"namespace": "blue", "name": "u"}, "status": {"draws": 30}}]}`)
	}))
	defer server.Close()
	r, err := New(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	const prefix = "/apis/visibility.koord-queue.x-k8s.io/v1alpha1"
	for _, c := range []struct{ namespace, queue, path string }{
		{"blue", "", "/namespaces/blue/forecasts"},
		{"blue", "a,b", "/namespaces/blue/forecasts?fieldSelector=queue%3Da%5C%2Cb"},
		{"", "", "/forecasts"},
	} {
		found, err := r.Forecasts(t.Context(), c.namespace, c.queue)
		require.NoError(t, err)
		require.EqualValues(t, 30, found["blue/u"].Status.Draws)
		require.Equal(t, prefix+c.path, asked)
	}
}
