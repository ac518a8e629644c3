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

package history

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	kubemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

// lifeOf makes a unit go through its life, one step a second from a time on.
func lifeOf(r *Recorder, at time.Time, uid string) {
	state := func(s State) State {
		s.Key, s.UID = "a/"+uid, uid
		return s
	}
	states := []State{{}, state(in("Enqueued", 0)), state(in("Running", 1)), state(in("Succeed", 1))}
	for i := range states[1:] {
		r.Changed(at.Add(time.Duration(i)*time.Second), states[i], states[i+1])
	}
}

func everything(r *Recorder) []string {
	return unitsOf(r.Page(&Query{Limit: 1000}))
}

func onDisk(t *testing.T, path string) []string {
	t.Helper()
	records, skipped := readAll(t, path)
	require.Zero(t, skipped)
	var names []string
	for _, record := range records {
		names = append(names, record.Unit)
	}
	return names
}

func TestNothingIsRecordedBeforeAllIsKnown(t *testing.T) {
	r := New(Options{Records: 10})
	lifeOf(r, begin, "early")
	require.Empty(t, everything(r))
	r.Begin(begin)
	lifeOf(r, begin, "u")
	require.Equal(t, []string{"u", "u", "u", "u"}, everything(r)) // Enqueued, Admitted, Running, Succeeded

	none := New(Options{})
	none.Begin(begin)
	none.Lead()
	none.Changed(begin, State{}, in("Enqueued", 0))
	none.Run(t.Context())
	require.Nil(t, none)
}

// A standby that takes over has what the leader before recorded, and the file goes on without a gap or a repetition.
func TestANewLeaderGoesOnWithTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	start := func() *Recorder { return New(Options{Records: 100, Path: path, MaxSizeMB: 1, MaxFiles: 2}) }
	log := klog.Background()
	write := func(r *Recorder, entries []*entry) {
		for _, e := range entries {
			require.NoError(t, r.journal.write(&e.Record))
		}
		for len(r.lines) > 0 {
			record := <-r.lines
			require.NoError(t, r.journal.write(&record))
		}
	}

	first := start()
	first.Begin(begin)
	first.restore(log)
	first.Lead()
	write(first, first.catchUp(log))
	lifeOf(first, begin, "one")
	write(first, nil)
	require.Equal(t, []string{"one", "one", "one", "one"}, onDisk(t, path))

	standby := start()
	standby.Begin(begin.Add(10 * time.Second))
	standby.restore(log)
	require.Len(t, everything(standby), 4)
	require.Equal(t, begin, standby.Page(&Query{Limit: 1}).CompleteSince)
	// Both see the second life; the standby by its own clock.
	lifeOf(first, begin.Add(20*time.Second), "two")
	write(first, nil)
	lifeOf(standby, begin.Add(21*time.Second), "two")
	require.Len(t, everything(standby), 8)
	require.Empty(t, standby.lines, "a standby writes nothing")
	// The leader is gone before it sees the third.
	lifeOf(standby, begin.Add(30*time.Second), "three")
	standby.Lead()
	write(standby, standby.catchUp(log))
	lifeOf(standby, begin.Add(40*time.Second), "four")
	write(standby, nil)
	want := []string{}
	for _, unit := range []string{"one", "two", "three", "four"} {
		want = append(want, unit, unit, unit, unit)
	}
	require.Equal(t, want, onDisk(t, path))
	require.Equal(t, want, everything(standby))

	// A process that observes something while it reads the file has it once.
	third := start()
	third.Begin(begin.Add(35 * time.Second))
	lifeOf(third, begin.Add(41*time.Second), "four")
	lifeOf(third, begin.Add(50*time.Second), "five")
	third.restore(log)
	require.Equal(t, append(want, "five", "five", "five", "five"), everything(third))
}

func TestRunWritesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	r := New(Options{Records: 100, Path: path, MaxSizeMB: 1, MaxFiles: 2})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	r.Begin(begin)
	lifeOf(r, begin, "before")
	r.Lead()
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.follows
	}, 10*time.Second, time.Millisecond)
	lifeOf(r, begin.Add(time.Minute), "after")
	cancel()
	<-ended
	require.Equal(t, []string{"before", "before", "before", "before", "after", "after", "after", "after"}, onDisk(t, path))
}

// A disk that fails or is slow costs records in the file, which are counted, and nothing else.
func TestABrokenDiskStopsNothing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	counts, registry := metrics.New(metrics.Scheduler), kubemetrics.NewKubeRegistry()
	counts.MustRegister(registry.MustRegister)
	r := New(Options{
		Records: 2 * unwritten, Path: filepath.Join(file, "history.jsonl"), MaxSizeMB: 1, MaxFiles: 2, Metrics: counts,
	})
	log := klog.Background()
	r.Begin(begin)
	r.restore(log)
	require.Empty(t, r.catchUp(log))
	for range unwritten/4 + 1 { // nobody writes
		lifeOf(r, begin, "u")
	}
	require.Len(t, r.lines, unwritten)
	require.Len(t, everything(r), 1000)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Run(ctx)
	require.Empty(t, r.lines)
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
		# HELP scheduler_jobqueue_history_lost_records_total [ALPHA] Number of records of transitions that are not in `+
		`the history file: Overflow if the disk is too slow, Error if a write failed.
		# TYPE scheduler_jobqueue_history_lost_records_total counter
		scheduler_jobqueue_history_lost_records_total{cause="Error"} %d
		scheduler_jobqueue_history_lost_records_total{cause="Overflow"} 4
	`, unwritten)), "scheduler_jobqueue_history_lost_records_total"))
}

func TestNewest(t *testing.T) {
	r := New(Options{Records: 2000})
	r.Begin(begin)
	for i := range 300 {
		lifeOf(r, begin, fmt.Sprintf("u%03d", i)) // four records
	}
	var seen []uint64
	r.Newest(func(n *Numbered) bool { seen = append(seen, n.Number); return len(seen) < 1100 })
	require.Len(t, seen, 1100)
	for i, number := range seen {
		require.EqualValues(t, 1200-i, number)
	}
	seen = nil
	r.Newest(func(n *Numbered) bool { seen = append(seen, n.Number); return true })
	require.Len(t, seen, 1200)
	r = nil
	r.Newest(func(*Numbered) bool { t.Fail(); return true })
}
