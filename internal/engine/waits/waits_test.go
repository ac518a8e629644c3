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

package waits

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	kubemetrics "k8s.io/component-base/metrics"

	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// exporter has what is exported.
type exporter struct {
	*Waits
	registry kubemetrics.KubeRegistry
}

func newExporter() exporter {
	set, registry := metrics.New(metrics.Scheduler), kubemetrics.NewKubeRegistry()
	set.MustRegister(registry.MustRegister)
	return exporter{New(set), registry}
}

// values of a metric by its labels, in the order of their names: of a histogram the number of values.
func (e exporter) values(t *testing.T, name metrics.Name) map[string]float64 {
	t.Helper()
	families, err := e.registry.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := ""
			for _, label := range m.GetLabel() {
				key += "/" + label.GetValue()
			}
			if f.GetName() == string(name) {
				out[key] = m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return out
}

// A tenant may have very many namespaces: they have as many series as the bound allows, and other queues keep theirs.
func TestNamespacesOfAQueueAreBounded(t *testing.T) {
	e := newExporter()
	for i := range 3 * mostNamespaces {
		e.Admitted("crowded", fmt.Sprintf("n%03d", i), time.Second)
	}
	e.Admitted("quiet", "n250", time.Second)
	e.Admitted("", "n250", time.Second)
	waited := e.values(t, metrics.AdmissionWaitSeconds)
	require.Len(t, waited, mostNamespaces+3)
	require.Equal(t, float64(2*mostNamespaces), waited["//crowded"], "the others are summed")
	require.Equal(t, 1.0, waited["/n000/crowded"])
	require.Equal(t, 1.0, waited["/n250/quiet"])
	require.Equal(t, 1.0, waited["//"], "a queue that does not exist")

	e.NamespaceGone("n000")
	e.Admitted("crowded", "n250", time.Second)
	e.Admitted("crowded", "n251", time.Second)
	waited = e.values(t, metrics.AdmissionWaitSeconds)
	require.NotContains(t, waited, "/n000/crowded")
	require.Equal(t, 1.0, waited["/n250/crowded"], "it has the series that came free")
	require.NotContains(t, waited, "/n251/crowded")

	e.QueueGone("crowded")
	require.Equal(t, map[string]float64{"/n250/quiet": 1, "//": 1}, e.values(t, metrics.AdmissionWaitSeconds))
	e.Admitted("crowded", "n251", time.Second)
	require.Equal(t, 1.0, e.values(t, metrics.AdmissionWaitSeconds)["/n251/crowded"], "a new queue has all its series")
}

func TestLongestWaitOfQueuesWithAnObjective(t *testing.T) {
	type waiting struct {
		created, since int64
		parked         bool
	}
	for name, tc := range map[string]struct {
		units []waiting
		want  map[string]float64
	}{
		"nobody waits":               {nil, map[string]float64{}},
		"not the first in line":      {[]waiting{{created: 30}, {created: 10}, {created: 20}}, map[string]float64{"/q": 10}},
		"parked":                     {[]waiting{{created: 10, parked: true}, {created: 20}}, map[string]float64{"/q": 20}},
		"since its eviction":         {[]waiting{{created: 10, since: 30}, {created: 20}}, map[string]float64{"/q": 20}},
		"evicted, and the longest":   {[]waiting{{created: 40}, {created: 10, since: 30}}, map[string]float64{"/q": 30}},
		"it is not known since when": {[]waiting{{created: 10, since: -1}}, map[string]float64{}},
	} {
		t.Run(name, func(t *testing.T) {
			e, asked := newExporter(), []string{}
			line := func(queue string, visit func(int, *unit.Unit, bool) bool) {
				asked = append(asked, queue)
				for i, u := range tc.units {
					in := &unit.Unit{Key: fmt.Sprint(i), Created: time.Unix(u.created, 0)}
					require.True(t, visit(i+1, in, !u.parked))
				}
			}
			since := func(key string) time.Time {
				var i int
				_, err := fmt.Sscan(key, &i)
				require.NoError(t, err)
				switch u := tc.units[i]; {
				case u.since < 0:
					return time.Time{}
				case u.since > 0:
					return time.Unix(u.since, 0)
				default:
					return time.Unix(u.created, 0)
				}
			}
			e.SetQueue("q", 60)
			e.SetQueue("without an objective", 0)
			e.Measure(line, since)
			require.Equal(t, tc.want, e.values(t, metrics.LongestWaitStartSeconds))
			require.Equal(t, []string{"q"}, asked, "of others no line is looked at")
			require.Equal(t, map[string]float64{"/q": 60}, e.values(t, metrics.WaitObjectiveSeconds))
			e.SetQueue("q", 0)
			require.Empty(t, e.values(t, metrics.LongestWaitStartSeconds))
			require.Empty(t, e.values(t, metrics.WaitObjectiveSeconds))
		})
	}
}
