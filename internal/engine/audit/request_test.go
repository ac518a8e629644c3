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

package audit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnAuditIsMadeOnRequestOnceAMinute(t *testing.T) {
	a, now := New(Parts{}), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	require.Zero(t, a.Request(now))
	require.Len(t, a.requested, 1)
	<-a.requested // Loop begins it
	require.Equal(t, 40*time.Second, a.Request(now.Add(20*time.Second)))
	require.Empty(t, a.requested)
	require.Zero(t, a.Request(now.Add(time.Minute)))
	require.Len(t, a.requested, 1)
}
