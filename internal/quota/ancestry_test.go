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

package quota

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"

	"github.com/go-logr/logr"

	eqfake "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/generated/clientset/versioned/fake"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota"
)

// boundedBuild is set in the process that builds ElasticQuota while quotas are their own ancestors. Koordinator's loop
// over ancestors cannot be ended from outside, and allocates until it is.
const boundedBuild = "TEST_BUILD_WITH_OWN_ANCESTORS"

// mostHeap ends that process; ElasticQuota without quotas takes a few MB.
const mostHeap = 512 << 20

func TestElasticQuotaStartsWhereQuotasAreTheirOwnAncestors(t *testing.T) {
	if os.Getenv(boundedBuild) != "" {
		buildWithOwnAncestors(t)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=60s")
	child.Env = append(os.Environ(), boundedBuild+"=1", "GOMAXPROCS=2")
	said, err := child.CombinedOutput()
	require.NoError(t, err, "%s", said)
}

func buildWithOwnAncestors(t *testing.T) {
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if m.HeapAlloc > mostHeap {
				println("heap of", m.HeapAlloc>>20, "MB: ElasticQuota loops over ancestors")
				os.Exit(3)
			}
		}
	}()
	gates, ok := clientfeatures.FeatureGates().(interface {
		Set(key clientfeatures.Feature, value bool) error
	})
	require.True(t, ok)
	require.NoError(t, gates.Set(clientfeatures.WatchListClient, false))
	klog.SetLogger(logr.Discard())
	clients := kubefake.NewClientset()
	plugin, err := NewRegistry().Factory()(t.Context(), defaultPluginArgs(), &pluginHandle{
		Interface: eqfake.NewSimpleClientset(
			elasticQuota("self", "1", "2", under("self")),
			elasticQuota("a", "1", "2", under("b")), elasticQuota("b", "1", "2", under("c")),
			elasticQuota("c", "1", "2", under("a")), elasticQuota("below", "1", "2", under("a")),
			elasticQuota("free", "1", "2"),
		),
		clients: clients, informers: informers.NewSharedInformerFactory(clients, 0),
	})
	require.NoError(t, err)
	names := plugin.(*elasticquota.Plugin).GetGroupQuotaManagerForTree("").GetAllQuotaNames()
	require.Contains(t, names, "free")
	for _, name := range []string{"self", "a", "b", "c", "below"} {
		require.NotContains(t, names, name)
	}
}
