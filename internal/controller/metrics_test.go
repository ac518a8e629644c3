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

package controller

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

func TestKindThatIsNotManagedIsServedAsMetric(t *testing.T) {
	const kind = "Widget.v1.example.com"
	for _, step := range []struct {
		now  served.Availability
		want string
	}{
		{served.NotInstalled, `{kind="Widget.v1.example.com",reason="NotInstalled"} 1`},
		{served.Unsupported, `{kind="Widget.v1.example.com",reason="Unsupported"} 1`},
		{served.Available, ""},
	} {
		setKindAvailability(kind, step.now)
		name := string(metrics.ControllerKindUnavailable)
		want := ""
		if step.want != "" {
			want = "# HELP " + name + " [ALPHA] 1 while jobs of a managed kind are not managed: " +
				"NotInstalled, or Unsupported.\n# TYPE " + name + " gauge\n" + name + step.want + "\n"
		}
		require.NoError(t, testutil.GatherAndCompare(runtimemetrics.Registry, strings.NewReader(want), name), step.now)
	}
}
