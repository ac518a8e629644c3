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

package screen

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// A job that asks for more than max never fits, whatever share its quota has at this moment.
func TestNeverIsAboutMax(t *testing.T) {
	x := visibility.Shortage{
		Level: "team", Resource: "cpu", Bound: "runtime", NeverFits: true, Binds: true,
		Limit: resource.MustParse("2"), Max: ptr.To(resource.MustParse("10")),
		Request: resource.MustParse("12"), Missing: resource.MustParse("10"),
	}
	story := &Story{Live: &visibility.Unit{Status: visibility.UnitStatus{Shortages: []visibility.Shortage{x}}}}
	require.Equal(t, "The job asks for 12. Quota team never gives more than 10 of cpu (its max).", sentence(&x, ""))
	require.Equal(t, []string{"An operator raises max of cpu of quota team from 10 to 12."}, changes(story))
	x.NeverFits = false
	require.Contains(t, sentence(&x, ""), "a limit of 2 of cpu (its fair share of this moment)")
}

// Free quota does not help a job that asks for more than its quota can get while others use theirs.
func TestWhatIsMissingDoesNotHelp(t *testing.T) {
	x := visibility.Shortage{
		Level: "team", Resource: "cpu", Bound: "rightful", Binds: true, Limit: resource.MustParse("5"),
		Request: resource.MustParse("9"), Missing: resource.MustParse("4"),
	}
	said := sentence(&x, "ExceedsGuaranteedShare")
	require.NotContains(t, said, "must become free")
	require.Contains(t, said, "The job asks for 9. It is admitted when other quotas use less than they are guaranteed.")
	require.Contains(t, said, "5 of cpu (what it can get while others use what they are guaranteed)")
	require.Contains(t, sentence(&x, "QuotaExceeded"), "The job asks for 9, so 4 must become free.")
}

// An end helps only if it frees a resource that is short. It does not help a job that never fits, or one that asks for
// more than its quota can get. The end of a preemptible job does not help one that draws on min.
func TestEndsThatHelp(t *testing.T) {
	list := func(amounts string) (l corev1.ResourceList) {
		require.NoError(t, yaml.Unmarshal([]byte(amounts), &l))
		return l
	}
	holder := func(name, held string) visibility.Unit {
		return visibility.Unit{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
			Status: visibility.UnitStatus{Held: list(held)}}
	}
	short := func(resourceName, bound string, never bool) visibility.Shortage {
		return visibility.Shortage{Level: "team", Resource: resourceName, Bound: bound, NeverFits: never,
			Max: ptr.To(resource.MustParse("0")), Request: resource.MustParse("1"), Missing: resource.MustParse("1")}
	}
	binds := func(x visibility.Shortage) visibility.Shortage {
		x.Binds = true
		return x
	}
	for name, c := range map[string]struct {
		reason    string
		shortages []visibility.Shortage
		want      []string
	}{
		"one resource": {"QuotaExceeded", []visibility.Shortage{short("gpu", "max", false)},
			[]string{"The end of n/both frees gpu: 4."}},
		"on a level above": {"QuotaExceeded",
			[]visibility.Shortage{short("gpu", "runtime", false), short("cpu", "max", false)},
			[]string{"The end of n/cpus frees cpu: 2.", "The end of n/both frees cpu: 1, gpu: 4."}},
		"min and max": {"MinExceeded", []visibility.Shortage{short("gpu", "min", false), short("cpu", "max", false)},
			[]string{"The end of n/cpus frees cpu: 2.", "The end of n/both frees cpu: 1."}},
		"never": {"ExceedsMax", []visibility.Shortage{short("cpu", "max", false), short("gpu", "max", true)},
			[]string{"An operator raises max of gpu of quota team from 0 to 1."}},
		"too little in the cluster": {"QuotaExceeded",
			[]visibility.Shortage{binds(short("gpu", "max", false)), short("gpu", "total", false)},
			[]string{"The end of n/both frees gpu: 4."}},
		"too little at two levels": {"QuotaExceeded",
			[]visibility.Shortage{binds(short("gpu", "max", false)), short("gpu", "max", false)},
			[]string{"An operator raises max of gpu of quota team from 0 to 1, and max of gpu of quota team from 0 to 1.",
				"The end of n/both frees gpu: 4."}},
		"a share is too small as well": {"QuotaExceeded",
			[]visibility.Shortage{binds(short("gpu", "max", false)), short("gpu", "runtime", false)},
			[]string{"The end of n/both frees gpu: 4."}},
		"never, and too little now": {"ExceedsMax",
			[]visibility.Shortage{short("gpu", "max", true), short("gpu", "total", false)},
			[]string{"An operator raises max of gpu of quota team from 0 to 1."}},
		"never in the cluster": {"ExceedsMax",
			[]visibility.Shortage{short("gpu", "max", true), short("gpu", "total", true)}, nil},
		"more than its share": {"ExceedsGuaranteedShare", []visibility.Shortage{short("gpu", "rightful", false)}, nil},
		"nothing is short":    {"QueueHeld", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			live := &visibility.Unit{Status: visibility.UnitStatus{Reason: c.reason, Shortages: c.shortages}}
			story := &Story{Live: live, Holders: []visibility.Unit{
				holder("cpus", "{cpu: 2, memory: 1Gi}"), holder("both", "{cpu: 1, gpu: 4}"),
			}}
			require.Equal(t, c.want, changes(story))
		})
	}
}
