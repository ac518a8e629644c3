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
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

func full() *Record {
	amounts := Amounts{resources.FromMap(map[string]int64{"cpu": 1500, "memory": 1 << 40, "nvidia.com/gpu": 8})}
	return &Record{
		Time: begin.Add(90500 * time.Millisecond), Event: v1alpha1.RecordResized, Namespace: "research", Unit: "train",
		UID: "6d", Kind: "Job.v1.batch", Job: "train", Queue: "shared", Quota: "research", Priority: -5, Attempt: 2,
		Created: begin, Requested: amounts, Held: amounts, HeldBefore: amounts, Reason: "Because",
		Waited: 90.5, Ran: 0.001, Limit: 3600,
	}
}

func readAll(t *testing.T, path string) (records []Record, skipped int) {
	t.Helper()
	skipped, err := Read(path, func(r *Record) { records = append(records, *r) })
	require.NoError(t, err)
	return records, skipped
}

// The names of the fields are part of the format.
func TestFormat(t *testing.T) {
	text, err := full().encode()
	require.NoError(t, err)
	require.Equal(t, `{"v":1,"time":"2026-01-01T12:01:30.5Z","event":"Resized","namespace":"research","unit":"train",`+
		`"uid":"6d","kind":"Job.v1.batch","job":"train","queue":"shared","quota":"research","priority":-5,"attempt":2,`+
		`"created":"2026-01-01T12:00:00Z",`+
		`"requested":{"cpu":1.5,"memory":1099511627776,"nvidia.com/gpu":8},`+
		`"held":{"cpu":1.5,"memory":1099511627776,"nvidia.com/gpu":8},`+
		`"heldBefore":{"cpu":1.5,"memory":1099511627776,"nvidia.com/gpu":8},`+
		`"reason":"Because","waitedSeconds":90.5,"ranSeconds":0.001,"limitSeconds":3600}`+"\n", string(text))
	least, err := made(1, "a").encode()
	require.NoError(t, err)
	require.Equal(t, `{"v":1,"time":"2026-01-01T12:00:01Z","event":"Enqueued","namespace":"a","unit":"u1","uid":"uid-1",`+
		`"priority":0,"attempt":0,"created":"2026-01-01T12:00:00Z"}`+"\n", string(least))
}

func TestJournalRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "history.jsonl")
	records, skipped := readAll(t, path)
	require.Empty(t, records)
	require.Zero(t, skipped)

	want := []Record{*full(), *made(1, "a"), *made(2, "b")}
	j := newJournal(path, 1, 2)
	for i := range want {
		require.NoError(t, j.write(&want[i]))
	}
	require.NoError(t, j.close())
	records, skipped = readAll(t, path)
	require.Equal(t, want, records)
	require.Zero(t, skipped)
}

func TestTornAndForeignLinesAreSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	first, err := made(1, "a").encode()
	require.NoError(t, err)
	second, err := made(2, "a").encode()
	require.NoError(t, err)
	later := strings.Replace(string(second), `"v":1`, `"v":2`, 1)
	tooLong := `{"v":1,"reason":"` + strings.Repeat("x", 3*maxLine) + `"}` + "\n"
	text := string(first) + later + tooLong + "nonsense\n{}\n\n" + string(second[:len(second)/2])
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	records, skipped := readAll(t, path)
	require.Equal(t, []Record{*made(1, "a")}, records)
	require.Equal(t, 5, skipped)

	// The next write does not join the torn line.
	j := newJournal(path, 100, 2)
	require.NoError(t, j.write(made(3, "a")))
	require.NoError(t, j.close())
	records, _ = readAll(t, path)
	require.Equal(t, []Record{*made(1, "a"), *made(3, "a")}, records)
}

func TestRotatedFilesAreReadInOrder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "history.jsonl")
	for name, n := range map[string]int{
		"history.jsonl": 3, "history-2026-01-01T00-00-00.000.jsonl": 1, "history-2026-01-02T00-00-00.000.jsonl": 2,
		"history-old.jsonl": 9, "other-2026-01-01T00-00-00.000.jsonl": 9, "history-2026-01-01T00-00-00.000": 9,
	} {
		text, err := made(n, "a").encode()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	records, _ := readAll(t, path)
	require.Equal(t, []Record{*made(1, "a"), *made(2, "a"), *made(3, "a")}, records)

	// A file is rotated when it is full, and the names are those that are read.
	j := newJournal(path, 1, 3)
	long := made(4, "a")
	long.Reason = strings.Repeat("x", 400_000)
	for range 4 {
		require.NoError(t, j.write(long))
	}
	require.NoError(t, j.close())
	records, _ = readAll(t, path)
	require.GreaterOrEqual(t, len(records), 4)
	require.Equal(t, *long, records[len(records)-1])
}

// FuzzDecode: no line of a file stops the scheduler, and one that is read is written the same.
func FuzzDecode(f *testing.F) {
	for _, r := range []*Record{full(), made(1, "a")} {
		text, err := r.encode()
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add([]byte(`{"v":1,"time":"2026-01-01T00:00:00Z","event":"X","held":{"cpu":-1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decode(bytes.TrimSpace(text))
		if err != nil {
			return
		}
		again, err := r.encode()
		require.NoError(t, err)
		same, err := decode(bytes.TrimSpace(again))
		require.NoError(t, err)
		require.Equal(t, r.Held.String(), same.Held.String())
		require.Equal(t, r.identity().uid, same.identity().uid)
	})
}
