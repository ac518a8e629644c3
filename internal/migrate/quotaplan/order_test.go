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

package quotaplan_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/quotaplan"
)

func TestOrder(t *testing.T) {
	chain := map[string]string{"n00": ""}
	for i := 1; i <= quotaplan.MaxDepth; i++ {
		chain[fmt.Sprintf("n%02d", i)] = fmt.Sprintf("n%02d", i-1)
	}
	for name, tc := range map[string]struct {
		parents     map[string]string
		order, lost []string
	}{
		"nothing":            {nil, nil, nil},
		"children after":     {map[string]string{"a": "z", "b": "", "z": ""}, []string{"z", "a", "b"}, nil},
		"above itself":       {map[string]string{"a": "a", "b": ""}, []string{"b"}, []string{"a"}},
		"a cycle, and below": {map[string]string{"a": "b", "b": "a", "c": "a"}, nil, []string{"a", "b", "c"}},
		"too deep": {chain, []string{"n00", "n01", "n02", "n03", "n04", "n05", "n06", "n07", "n08", "n09", "n10", "n11",
			"n12", "n13", "n14", "n15"}, []string{"n16"}},
	} {
		t.Run(name, func(t *testing.T) {
			order, lost := quotaplan.Order(tc.parents)
			require.Equal(t, tc.order, order)
			require.Equal(t, tc.lost, lost)
		})
	}
}
