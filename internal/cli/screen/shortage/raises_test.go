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

package shortage

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// A greater quota helps only if it is enough. That is not known of a share, and more than the cluster has is not.
func TestRaises(t *testing.T) {
	most, zero := resource.MustParse("10"), resource.MustParse("0")
	x := func(resourceName, bound string, never bool) visibility.Shortage {
		return visibility.Shortage{Level: "team", Resource: resourceName, Bound: bound, NeverFits: never,
			Max: &zero, Request: resource.MustParse("1"), Missing: resource.MustParse("1")}
	}
	binds := func(x visibility.Shortage) visibility.Shortage {
		x.Binds = true
		return x
	}
	type list = []visibility.Shortage
	gpu := "An operator raises max of gpu of quota team from 0 to 1"
	for name, c := range map[string]struct {
		list list
		want string
	}{
		"max":                             {list{binds(x("gpu", "max", false))}, gpu + "."},
		"never":                           {list{x("cpu", "max", false), x("gpu", "max", true)}, gpu + "."},
		"never, and too little now":       {list{x("gpu", "max", true), x("gpu", "total", false)}, gpu + "."},
		"never in the cluster":            {list{x("gpu", "max", true), x("gpu", "total", true)}, ""},
		"too little in the cluster":       {list{binds(x("gpu", "max", false)), x("gpu", "total", false)}, ""},
		"a share is too small as well":    {list{binds(x("gpu", "max", false)), x("gpu", "runtime", false)}, ""},
		"something else keeps it waiting": {list{x("gpu", "max", false)}, ""},
		"at two levels": {list{binds(x("gpu", "max", false)), x("gpu", "max", false)},
			gpu + ", and max of gpu of quota team from 0 to 1."},
		"above max, which is above the share of this moment": {list{{
			Level: "team", Resource: "cpu", Bound: "runtime", NeverFits: true, Binds: true, Limit: resource.MustParse("2"),
			Max: &most, Request: resource.MustParse("12"), Missing: resource.MustParse("10"),
		}}, "An operator raises max of cpu of quota team from 10 to 12."},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, Raises(c.list)) })
	}
}
