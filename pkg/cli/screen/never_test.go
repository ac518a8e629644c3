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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

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
