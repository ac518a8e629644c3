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

package provisioning

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// failing is a mapper that answers all questions but one.
type failing struct {
	meta.RESTMapper
	asked, fails int
}

func (f *failing) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if f.asked++; f.asked == f.fails {
		return nil, errors.New("the API server does not answer")
	}
	return f.RESTMapper.RESTMapping(kind, versions...)
}

// An API server that does not answer for a moment must not end the making of requests, whichever step of the set-up
// asks it.
func TestSetUpIsTriedAgain(t *testing.T) {
	for fails := 1; ; fails++ {
		scheme := runtime.NewScheme()
		require.NoError(t, errors.Join(v1alpha1.AddToScheme(scheme), autoscalingv1.AddToScheme(scheme)))
		kinds := []schema.GroupVersionKind{
			configKind.WithVersion("v1beta1"),
			{Group: v1beta1.GroupName, Version: "v1beta1", Kind: "AdmissionCheck"},
			autoscalingv1.SchemeGroupVersion.WithKind("ProvisioningRequest"),
			v1alpha1.SchemeGroupVersion.WithKind("QueueUnit"),
		}
		known := meta.NewDefaultRESTMapper([]schema.GroupVersion{kinds[0].GroupVersion()})
		for _, kind := range kinds {
			known.Add(kind, meta.RESTScopeNamespace)
		}
		mapper := &failing{RESTMapper: known, fails: fails}
		mgr, err := ctrl.NewManager(&rest.Config{Host: "127.0.0.1:1"}, ctrl.Options{
			Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
			MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
		})
		require.NoError(t, err)
		s := &starter{mgr: mgr}
		failed := s.setup(t.Context())
		if mapper.asked < fails {
			require.NoError(t, failed)
			require.Greater(t, fails, 2, "steps of the set-up ask the mapper")
			return
		}
		if failed != nil {
			require.NoError(t, s.setup(t.Context()), "question %d", fails)
		}
	}
}
