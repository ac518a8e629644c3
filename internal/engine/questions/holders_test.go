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

package questions

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
)

// A shortage decides if the end of units at its level helps.
func TestDeciding(t *testing.T) {
	short := func(level string, kind decide.LimitKind, limit, used int64) decide.Shortage {
		return decide.Shortage{
			Level: level, Kind: kind, Limit: limit, Outstanding: used, Free: limit - used, Request: 4,
			Missing: 4 - limit + used,
		}
	}
	claimed := func(level string, free int64) decide.Shortage {
		return decide.Shortage{Level: level, Kind: decide.LimitMax, Limit: 9, Free: free, Request: 4, Claimed: 9, Missing: 9}
	}
	tooLarge := short("leaf", decide.LimitRuntime, 2, 0)
	tooLarge.TooLarge = true
	never := short("firm", decide.LimitMax, 2, 0)
	never.Never = true
	for name, c := range map[string]struct {
		list []decide.Shortage
		want string
	}{
		"nothing is short": {nil, ""},
		"max of the leaf": {
			[]decide.Shortage{short("leaf", decide.LimitMax, 4, 2), short("firm", decide.LimitMax, 9, 8)}, "leaf"},
		"a share that is not used, below a level that is full": {
			[]decide.Shortage{short("leaf", decide.LimitRuntime, 2, 0), short("firm", decide.LimitMax, 4, 3)}, "firm"},
		"a share that is not used, below a share that is used": {
			[]decide.Shortage{short("leaf", decide.LimitRuntime, 2, 0), short("dept", decide.LimitRuntime, 4, 4)}, "dept"},
		"a share that is used": {
			[]decide.Shortage{short("leaf", decide.LimitRuntime, 2, 3), short("firm", decide.LimitMax, 4, 3)}, "leaf"},
		"nothing but a share that is not used": {[]decide.Shortage{short("leaf", decide.LimitRuntime, 2, 0)}, "leaf"},
		"claims":                               {[]decide.Shortage{claimed("leaf", 4), claimed("firm", 5)}, "leaf"},
		"claims, and a level that is full":     {[]decide.Shortage{claimed("leaf", 4), claimed("firm", 1)}, "firm"},
		"more than it can rightfully get":      {[]decide.Shortage{tooLarge, short("firm", decide.LimitMax, 4, 3)}, "firm"},
		"more than it ever gets":               {[]decide.Shortage{short("leaf", decide.LimitMax, 4, 2), never}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sh := Deciding(c.list)
			if c.want == "" {
				require.Nil(t, sh)
				return
			}
			require.Equal(t, c.want, sh.Level)
		})
	}
}
