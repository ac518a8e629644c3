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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func made(n int, namespace string) *Record {
	return &Record{
		Time: begin.Add(time.Duration(n) * time.Second), Event: v1alpha1.RecordEnqueued, Namespace: namespace,
		Unit: fmt.Sprintf("u%d", n), UID: fmt.Sprintf("uid-%d", n), Created: begin,
	}
}

// The ring is within its bounds, lists what it has in order, and a namespace with less than its share loses nothing.
func TestRingIsBoundedAndFair(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		maxRecords := rapid.IntRange(1, 40).Draw(t, "maxRecords")
		maxBytes := rapid.IntRange(500, 20_000).Draw(t, "maxBytes")
		r := newRing(maxRecords, maxBytes, begin)
		bytesOf, all, dropped := map[string]int{}, map[string][]*Record{}, map[string]bool{}
		largest := 0
		for i := range rapid.IntRange(1, 120).Draw(t, "records") {
			namespace := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "namespace")
			record := made(i, namespace)
			record.Job = strings.Repeat("x", rapid.IntRange(0, 300).Draw(t, "length"))
			largest = max(largest, record.size())
			r.add(record)
			all[namespace] = append(all[namespace], record)

			require.LessOrEqual(t, r.all.Len(), maxRecords)
			require.LessOrEqual(t, r.bytes, maxBytes)
			sum, records := 0, 0
			for name, s := range r.shares {
				require.Equal(t, name, s.mustMin(t).Namespace)
				own := 0
				s.records.Walk(func(e *entry) bool {
					own += e.size()
					return true
				})
				require.Equal(t, own, s.bytes)
				sum, records = sum+own, records+s.records.Len()
			}
			require.Equal(t, r.bytes, sum)
			require.Equal(t, r.all.Len(), records)
			for name, want := range all {
				have, more := r.page(name, 0, len(want))
				require.False(t, more)
				if len(have) < len(want) {
					dropped[name] = true
				}
				// The newest are there, without a gap, and what was dropped is older than it says.
				for at, e := range have {
					require.Equal(t, *want[len(want)-1-at], e.Record)
				}
				if n := len(want) - len(have); n > 0 {
					require.False(t, r.completeSince(name).Before(want[n-1].Time), name)
				}
				bytesOf[name] = 0
				for _, record := range want {
					bytesOf[name] += record.size()
				}
			}
		}
		for name, bytes := range bytesOf {
			share := min(maxBytes/len(bytesOf), maxRecords/len(bytesOf)*recordBytes) - largest
			if bytes < share {
				require.False(t, dropped[name], "%s has %d bytes of %d", name, bytes, share)
			}
		}
	})
}

func (s *share) mustMin(t require.TestingT) *entry {
	e, ok := s.records.Min()
	require.True(t, ok)
	return e
}

// One namespace with very many transitions pushes out its own records alone.
func TestANoisyNamespaceKeepsOthers(t *testing.T) {
	r := newRing(1000, 1000*bytesOfRecord, begin)
	for i := range 10 {
		r.add(made(i, "quiet"))
	}
	for i := range 100_000 {
		r.add(made(i, "noisy"))
	}
	quiet, _ := r.page("quiet", 0, 100)
	require.Len(t, quiet, 10)
	require.Equal(t, begin, r.completeSince("quiet"))
	require.Equal(t, begin.Add(99_009*time.Second), r.completeSince("noisy"))
	require.Equal(t, r.completeSince("noisy"), r.completeSince(""))
	require.Equal(t, begin, r.completeSince("none"))
}

func TestPages(t *testing.T) {
	r := New(Options{Records: 100_000})
	for i := range 50_000 {
		r.ring.add(made(i, []string{"a", "b"}[i%2]))
	}
	next, units := uint64(0), []string{}
	for {
		page := r.Page(&Query{Namespace: "b", Limit: 400, Before: next})
		for _, record := range page.Records {
			require.Equal(t, "b", record.Namespace)
			units = append(units, record.Unit)
		}
		if next = page.Next; next == 0 {
			break
		}
		require.Len(t, page.Records, 400)
	}
	require.Len(t, units, 25_000)
	require.Equal(t, "u49999", units[0])
	require.Equal(t, "u1", units[24_999])

	// A late entry is found in several pages, each of bounded work.
	var found []string
	pages := 0
	for next = 0; pages == 0 || next != 0; pages++ {
		page := r.Page(&Query{Unit: "u7", Limit: 10, Before: next})
		for _, record := range page.Records {
			found = append(found, record.Unit)
		}
		next = page.Next
	}
	require.Equal(t, []string{"u7"}, found)
	require.Equal(t, 3, pages)

	var none *Recorder
	require.Empty(t, none.Page(&Query{Limit: 1}).Records)
}

func TestSelects(t *testing.T) {
	record := &Record{
		Event: v1alpha1.RecordAdmitted, Namespace: "a", Unit: "u", UID: "1", Job: "j", Queue: "q", Quota: "x",
	}
	bare := &Record{Event: v1alpha1.RecordAdmitted, Unit: "bare"}
	for _, q := range []Query{
		{}, {Unit: "u"}, {UID: "1"}, {Job: "j"}, {Queue: "q"}, {Quota: "x"}, {Event: v1alpha1.RecordAdmitted},
	} {
		require.True(t, q.selects(record), q)
	}
	for _, q := range []Query{
		{Unit: "j"}, {UID: "2"}, {Job: "u"}, {Queue: "x"}, {Quota: "q"}, {Event: v1alpha1.RecordEvicted},
		{Unit: "u", Job: "u"},
	} {
		require.False(t, q.selects(record), q)
	}
	require.True(t, (&Query{Job: "bare"}).selects(bare), "a unit without a job")
}

func BenchmarkAdd(b *testing.B) {
	r := newRing(100_000, 100_000*bytesOfRecord, begin)
	records := make([]*Record, 1000)
	for i := range records {
		records[i] = made(i, fmt.Sprint("ns", i%100))
	}
	for i := 0; b.Loop(); i++ {
		r.add(records[i%len(records)])
	}
}

func BenchmarkPage(b *testing.B) {
	r := New(Options{Records: 100_000})
	for i := range 100_000 {
		r.ring.add(made(i, fmt.Sprint("ns", i%100)))
	}
	for b.Loop() {
		r.Page(&Query{Limit: 500, Before: 50_000})
	}
}

func unitsOf(page Page) []string {
	var names []string
	for _, record := range slices.Backward(page.Records) {
		names = append(names, record.Unit)
	}
	return names
}
