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

package visibility

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/internal/snapshot"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// read asks for the snapshot and reads its document.
func read(t *testing.T, r *Reader) (*v1alpha1.Snapshot, *snapshot.Snapshot) {
	t.Helper()
	var answer v1alpha1.Snapshot
	asked := call(t, served(t, r, anybody), http.MethodGet, base+"/snapshots/now", "boss", &answer)
	require.Equal(t, http.StatusOK, asked.Code)
	got, err := snapshot.Read(bytes.NewReader(answer.Document))
	require.NoError(t, err)
	return &answer, got
}

func TestSnapshot(t *testing.T) {
	for _, leads := range []bool{true, false} {
		r := NewReader(stepped{world(t, 3, leads)}, clocktesting.NewFakeClock(start))
		answer, got := read(t, r)
		require.Equal(t, "now", answer.Name)
		require.Equal(t, leads, answer.Leader)
		require.True(t, start.Equal(got.At))
		require.False(t, got.Extended)
		require.Len(t, got.Facts.Quotas, 4)
		require.Len(t, got.Facts.Queues, 2)
		require.Len(t, got.Facts.Units, 5)
		require.Empty(t, got.Runs)
	}
}

// Past runs are those that ended by themselves.
func TestRunsOfASnapshot(t *testing.T) {
	r := readerOf(t, 0)
	r.History = history.New(history.Options{Records: 100})
	r.History.Begin(start)
	cpu := resources.FromMap(map[string]int64{"cpu": 1000})
	for i, end := range []history.State{
		{Phase: "Succeed", Limit: time.Hour}, {Phase: "TimeoutBackoff"}, {Phase: "Failed"},
		{Phase: "Succeed", Observed: true},
	} {
		runs := history.State{
			Key: "a/u", UID: string(rune('a' + i)), Queue: "shared", Requested: cpu, Created: start, Allocated: start,
			Attempts: 1, Phase: "Running", Limit: end.Limit, Observed: end.Observed,
		}
		ended := runs
		ended.Phase = end.Phase
		r.History.Changed(start.Add(time.Duration(i+1)*time.Minute), runs, ended)
	}
	_, got := read(t, r)
	require.Equal(t, []forecast.Ended{
		{User: "a", Queue: "shared", Size: cpu.Key(), Ran: 3 * time.Minute},
		{User: "a", Queue: "shared", Size: cpu.Key(), Limit: time.Hour, Ran: time.Minute},
	}, got.Runs)
}

func TestSnapshotsAreWrittenOneAtATime(t *testing.T) {
	r := readerOf(t, 0)
	s := &snapshots{reader: r, turn: make(chan struct{}, 1)}
	s.turn <- struct{}{}
	_, err := s.Get(t.Context(), v1alpha1.SnapshotNow, nil)
	require.ErrorContains(t, err, "another snapshot is being written")
	<-s.turn
	_, err = s.Get(t.Context(), v1alpha1.SnapshotNow, nil)
	require.NoError(t, err)
	_, err = s.Get(t.Context(), "then", nil)
	require.ErrorContains(t, err, `"then" not found`)
}
