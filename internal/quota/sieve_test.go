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
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	kubemetrics "k8s.io/component-base/metrics"

	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/ancestry"
)

func TestTheLeaderSaysWhichQuotasAreWithheld(t *testing.T) {
	recorder, registry := events.NewFakeRecorder(10), kubemetrics.NewKubeRegistry()
	s := &sieve{recorder: func() events.EventRecorder { return recorder }, metrics: metrics.New(metrics.Scheduler)}
	s.metrics.MustRegister(registry.MustRegister)
	a := types.NamespacedName{Namespace: "n", Name: "a"}
	b := types.NamespacedName{Namespace: "n", Name: "b"}
	said := func() (all []string) {
		for len(recorder.Events) > 0 {
			all = append(all, <-recorder.Events)
		}
		return all
	}
	s.told(map[types.NamespacedName]ancestry.Reason{a: ancestry.OwnAncestor})
	require.Empty(t, said(), "a replica that does not lead is silent")
	s.Start()
	require.Equal(t, []string{"Warning QuotaOwnAncestor " + withheldFor[ancestry.OwnAncestor]}, said())
	s.told(map[types.NamespacedName]ancestry.Reason{a: ancestry.OwnAncestor, b: ancestry.NameTaken})
	require.Equal(t, []string{"Warning QuotaNameTaken " + withheldFor[ancestry.NameTaken]}, said(), "only what is new")
	require.Equal(t, map[string]float64{"QuotaOwnAncestor": 1, "QuotaBelowOwnAncestor": 0, "QuotaNameTaken": 1},
		withheldIn(t, registry))
	s.told(nil)
	require.Empty(t, said())
	require.Zero(t, withheldIn(t, registry)["QuotaOwnAncestor"])
	s.told(map[types.NamespacedName]ancestry.Reason{a: ancestry.OwnAncestor})
	require.Len(t, said(), 1, "it is withheld again")
}

func withheldIn(t *testing.T, registry kubemetrics.KubeRegistry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() == string(metrics.WithheldQuotas) {
			for _, m := range f.GetMetric() {
				values[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return values
}
