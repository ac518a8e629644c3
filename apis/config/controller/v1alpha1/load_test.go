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

package v1alpha1

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const head = "apiVersion: config.koord-queue/v1alpha1\nkind: ControllerConfiguration\n"

func TestLoadDefaults(t *testing.T) {
	c, err := Load([]byte(head))
	require.NoError(t, err)
	require.Equal(t, Default(), c)
	require.InDelta(t, 500, c.ClientConnection.QPS, 0)
	require.Equal(t, 1000, c.ClientConnection.Burst)
	require.Equal(t, ":8443", c.MetricsBindAddress)
	require.True(t, *c.MetricsSecure)
	require.Equal(t, ":8081", c.HealthProbeBindAddress)
	require.Equal(t, 16, c.Concurrency)
	require.Equal(t, 20, c.ReportsPerSecond)
	require.Equal(t, 10, c.EventsPerSecond)
	require.Equal(t, UnitTemplatesScheduling, c.UnitTemplates)
	require.EqualValues(t, "Any", c.DefaultReclaim)
	require.True(t, *c.LeaderElection.LeaderElect)
	require.Equal(t, "koord-queue", c.LeaderElection.ResourceNamespace)
	const lateRequest = 4 * time.Second
	l := c.LeaderElection
	require.Less(t, 2*l.RenewDeadline.Duration+l.RetryPeriod.Duration+lateRequest, l.LeaseDuration.Duration,
		"an old leader has given up before a new one takes over")
}

func TestLoadValues(t *testing.T) {
	c, err := Load([]byte(head + `
clientConnection: {qps: 50, burst: 60}
leaderElection: {leaderElect: false, leaseDuration: 30s}
queueNamespace: queues
concurrency: 4
metricsSecure: false
unitTemplates: Full
featureGates: {A: false}
`))
	require.NoError(t, err)
	require.Equal(t, 60, c.ClientConnection.Burst)
	require.False(t, *c.LeaderElection.LeaderElect)
	require.Equal(t, 30*time.Second, c.LeaderElection.LeaseDuration.Duration)
	require.Equal(t, "queues", c.LeaderElection.ResourceNamespace)
	require.Equal(t, UnitTemplatesFull, c.UnitTemplates)
	require.False(t, *c.MetricsSecure)
	require.Equal(t, map[string]bool{"A": false}, c.FeatureGates)
}

func TestLoadRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"unknown field":        {head + "concurency: 4\n", "concurency"},
		"unknown nested field": {head + "clientConnection: {qqs: 4}\n", "qqs"},
		"repeated field":       {head + "concurrency: 4\nconcurrency: 5\n", "concurrency"},
		"wrong kind":           {"apiVersion: config.koord-queue/v1alpha1\nkind: Other\n", "Other"},
		"no kind":              {"concurrency: 4\n", "ControllerConfiguration"},
		"unknown templates":    {head + "unitTemplates: Some\n", "unitTemplates"},
		"unknown reclaim":      {head + "defaultReclaim: Always\n", "defaultReclaim"},
		"negative concurrency": {head + "concurrency: -1\n", "concurrency"},
		"negative reports":     {head + "reportsPerSecond: -1\n", "reportsPerSecond"},
		"negative events":      {head + "eventsPerSecond: -1\n", "eventsPerSecond"},
		"negative qps":         {head + "clientConnection: {qps: -1}\n", "clientConnection.qps"},
		"lease too short":      {head + "leaderElection: {leaseDuration: 1s}\n", "leaseDuration"},
		"unused certificate":   {head + "metricsSecure: false\nmetricsCertDir: d\n", "metricsCertDir"},
		"bad namespace":        {head + "queueNamespace: A_b\n", "queueNamespace"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load([]byte(tc.text))
			require.ErrorContains(t, err, tc.want)
		})
	}
}
