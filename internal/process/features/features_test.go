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

package features

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

func TestDefaults(t *testing.T) {
	gates, err := New(nil)
	require.NoError(t, err)
	for _, name := range []featuregate.Feature{AdmissionChecks, PartialAdmission, Placement, Reservations} {
		require.True(t, gates.Enabled(name), name)
	}
	require.True(t, slices.IsSortedFunc(Definitions(), func(a, b Definition) int {
		return strings.Compare(string(a.Name), string(b.Name))
	}))
	for _, d := range Definitions() {
		require.Equal(t, map[bool]string{true: "Beta", false: "Alpha"}[d.Spec.Default], d.Stage())
		require.NotEmpty(t, d.On)
		require.NotEmpty(t, d.Off)
	}
}

func TestAGateIsSet(t *testing.T) {
	gates, err := New(map[string]bool{"AdmissionChecks": false, "PartialAdmission": true})
	require.NoError(t, err)
	require.False(t, gates.Enabled(AdmissionChecks))
	require.True(t, gates.Enabled(PartialAdmission))
	other, err := New(nil)
	require.NoError(t, err)
	require.True(t, other.Enabled(AdmissionChecks), "gates of one process are not those of another")
}

func TestAnUnknownGateIsNamedWithThoseThatAre(t *testing.T) {
	for _, name := range []string{"AdmisionChecks", "AllBeta", ""} {
		_, err := New(map[string]bool{name: true})
		require.EqualError(t, err, `featureGates: Unsupported value: "`+name+
			`": supported values: "AdmissionChecks", "PartialAdmission", "Placement", "Reservations"`)
	}
}

func TestMetric(t *testing.T) {
	gates, err := New(map[string]bool{"AdmissionChecks": false})
	require.NoError(t, err)
	Record(t.Context(), gates)
	require.NoError(t, testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(`
# HELP kubernetes_feature_enabled [BETA] This metric records the data about the stage and enablement of a k8s feature.
# TYPE kubernetes_feature_enabled gauge
kubernetes_feature_enabled{name="AdmissionChecks",stage="BETA"} 0
kubernetes_feature_enabled{name="PartialAdmission",stage="BETA"} 1
kubernetes_feature_enabled{name="Placement",stage="BETA"} 1
kubernetes_feature_enabled{name="Reservations",stage="BETA"} 1
`), "kubernetes_feature_enabled"))
}
