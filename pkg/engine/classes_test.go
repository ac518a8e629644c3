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

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

func TestPriorityOfAClass(t *testing.T) {
	c := classes{}
	require.Zero(t, c.priorityOf("high"))
	for _, step := range []struct {
		name               string
		class              *objects.Class
		changed, byDefault bool
		high, otherwise    int32
	}{
		{"high", &objects.Class{Value: 9}, true, false, 9, 0},
		{"high", &objects.Class{Value: 9}, false, false, 9, 0},
		{"usual", &objects.Class{Value: 5, GlobalDefault: true}, true, true, 9, 5},
		{"low", &objects.Class{Value: 1, GlobalDefault: true}, true, true, 9, 1},
		{"high", nil, true, false, 1, 1},
		{"low", &objects.Class{Value: 1}, true, true, 5, 5},
		{"usual", nil, true, true, 0, 0},
	} {
		changed, byDefault := c.set(step.name, step.class)
		require.Equal(t, []bool{step.changed, step.byDefault}, []bool{changed, byDefault}, "%+v", step)
		require.Equal(t, []int32{step.high, step.otherwise}, []int32{c.priorityOf("high"), c.priorityOf("")}, "%+v", step)
	}
}
