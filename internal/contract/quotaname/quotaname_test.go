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

package quotaname_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/quotaname"
)

func TestOf(t *testing.T) {
	long := strings.Repeat("a", 70)
	for text, want := range map[string]string{
		"team-a": "team-a", "Team_A": "team-a", "root/team a": "root-team-a", "v1.2": "v1.2",
		"--x..": "x", "团队": "", "": "", "团队-7": "7",
		long: strings.Repeat("a", 54) + "-" + quotaname.Of(long)[55:], strings.Repeat("a", 63): strings.Repeat("a", 63),
	} {
		require.Equal(t, want, quotaname.Of(text), text)
		require.LessOrEqual(t, len(quotaname.Of(text)), 63)
	}
	require.NotEqual(t, quotaname.Of(long), quotaname.Of(long+"b"))
}

func TestUsable(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "": false, "koordinator-root-quota": false, "a.-b": false, "A": false, strings.Repeat("a", 64): false,
	} {
		require.Equal(t, want, quotaname.Usable(name), name)
	}
}
