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

package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPeriod(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"24h": 24 * time.Hour, "30d": 720 * time.Hour, "90m": 90 * time.Minute,
	} {
		var p period
		require.NoError(t, p.Set(text))
		require.Equal(t, want, time.Duration(p))
		var again period
		require.NoError(t, again.Set(p.String()))
		require.Equal(t, p, again)
	}
	for _, text := range []string{"", "d", "-1d", "-1h", "99999d", "1.5d", "soon"} {
		var p period
		require.Error(t, p.Set(text), text)
	}
}
