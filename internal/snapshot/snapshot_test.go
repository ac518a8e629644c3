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

package snapshot

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

// fill sets each field to a value of its own.
func fill(v reflect.Value, number *int64) {
	*number++
	switch into := v.Addr().Interface().(type) {
	case *time.Time:
		*into = epoch.Add(time.Duration(*number) * time.Second)
		return
	case *time.Duration:
		*into = time.Duration(*number)
		return
	case *resources.List:
		*into = cpu(*number)
		return
	case **unit.Sizes:
		*into = unit.NewSizes([]unit.PodSetSize{{Count: 9, Least: 2, Request: cpu(*number)}}).Fixed()
		return
	case *shares.Part:
		*into = shares.Sharing
		return
	case *queue.Victims:
		*into = queue.VictimsAny
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), number)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), number)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), number)
	case reflect.String:
		v.SetString(fmt.Sprintf("ns/%d", *number))
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(*number)
	}
}

func written(t require.TestingT, s *Snapshot) []byte {
	var b bytes.Buffer
	require.NoError(t, Write(&b, s))
	return b.Bytes()
}

func again(t require.TestingT, s *Snapshot) *Snapshot {
	got, err := Read(bytes.NewReader(written(t, s)))
	require.NoError(t, err)
	return got
}

// A fact that is added to the core is written, or named here: a world has no use for it.
func TestNoFactIsLost(t *testing.T) {
	var number int64
	u, q, spec := &unit.Unit{}, admission.Quota{}, queue.Spec{}
	fill(reflect.ValueOf(u).Elem(), &number)
	fill(reflect.ValueOf(&q).Elem(), &number)
	fill(reflect.ValueOf(&spec).Elem(), &number)
	u.Expected, u.KindUnlisted, u.Ready, u.NotReadySince, u.Labels = unit.Expected{}, false, false, time.Time{}, ""
	u.Checks, u.TemplatesWritten, u.ResizePending, u.Said, u.Heartbeat = nil, false, 0, nil, time.Time{}
	u.Deactivate.Message, u.InvalidMessage, spec.Fault.Message = "", "", ""
	spec.AdmissionChecks, spec.HeartbeatTimeout, spec.Timeouts, spec.MostEvictions = nil, 0, nil, 0
	s := &Snapshot{
		At: epoch, Extended: true, Runs: []forecast.Ended{{User: "a", Queue: "b", Size: "c", Limit: 2, Ran: 1}},
		Facts: &virtual.Facts{
			Config: admission.Config{ClaimTimeout: 1, ClaimAfter: 2, PartialAdmission: true},
			Quotas: []admission.Quota{q}, Queues: []queue.Spec{spec}, Units: []*unit.Unit{u},
		},
	}
	got := again(t, s)
	require.True(t, u.Same(got.Facts.Units[0]), "%+v\n%+v", u, got.Facts.Units[0])
	got.Facts.Units = s.Facts.Units
	require.Equal(t, s, got)
}

// A document of one version is read for as long as the version is.
func TestFormat(t *testing.T) {
	u := &unit.Unit{
		Key: "ns/u", UID: "1", Queue: "q", Quota: "q", Active: true, Phase: unit.PhaseRunning, Created: epoch, Pods: 2,
		Request: cpu(1500), Stated: unit.Stated{Admitted: epoch, MaximumExecution: time.Hour},
	}
	s := &Snapshot{
		At: epoch, Runs: []forecast.Ended{{User: "ns", Queue: "q", Size: cpu(1500).Key(), Ran: time.Minute}},
		Facts: &virtual.Facts{
			Quotas: []admission.Quota{{Name: "q", Parent: "root", Limit: cpu(9), Terms: capacity.Terms{Part: shares.Sharing}}},
			Queues: []queue.Spec{{Name: "q", Policy: "FIFO", MaxPending: -1, MaxAdmitted: -1}},
			Units:  []*unit.Unit{u},
		},
	}
	require.Equal(t, `{"version":1,"at":"2026-01-01T00:00:00Z",`+
		`"quotas":[{"name":"q","parent":"root","limit":{"cpu":9},"part":"sharing"}],`+
		`"queues":[{"name":"q","policy":"FIFO","maxPending":-1,"maxAdmitted":-1}],`+
		`"units":[{"key":"ns/u","uid":"1","queue":"q","quota":"q","created":"2026-01-01T00:00:00Z","request":{"cpu":1500},`+
		`"pods":2,"phase":"Running","admitted":"2026-01-01T00:00:00Z","maximumExecution":"1h0m0s"}],`+
		`"runs":[{"user":"ns","queue":"q","size":"\"cpu\"=1500;","ran":"1m0s"}]}`+"\n", string(written(t, s)))
}

func TestBadDocuments(t *testing.T) {
	head, at := `{"version":1,`, `{"version":1,"at":"2026-01-01T00:00:00Z",`
	key := `"units":[{"key":"a/b"`
	for text, says := range map[string]string{
		"":                                    "not a snapshot: EOF",
		"[1]":                                 "not a snapshot: json: cannot unmarshal array",
		`{"version":2,"new":1}`:               "version 2: this program reads version 1",
		head + `"new":1}`:                     `not a snapshot: json: unknown field "new"`,
		head + `"units":[]}`:                  "at: no time",
		head + `"at":"2300-01-01T00:00:00Z"}`: "at: 2300-01-01T00:00:00Z is not between 1970 and 2199",
		at + `"units":[]}{}`:                  "something follows the document",
		at + `"units":[{"key":"a"}]}`:         `units[0].key: "a" is not NAMESPACE/NAME`,
		at + key + `},{"key":"a/b"}]}`:        `units[1].key: "a/b" is there twice`,
		at + key + `,"pods":-1}]}`:            "units[0].pods: -1 is below zero",
		at + key + `,"pods":"x"}]}`:           "units.pods of type int64",
		at + key + `,"created":"1900-01-01T00:00:00Z"}]}`:         "units[0]: 1900-01-01T00:00:00Z is not",
		at + key + `,"executed":"-1s"}]}`:                         `"-1s" is below zero`,
		at + key + `,"sizes":{"sets":[{"count":-1}]}}]}`:          "units[0].sizes.sets[0]: a number below zero",
		at + `"quotas":[{"name":""}]}`:                            "quotas[0].name: no name",
		at + `"quotas":[{"name":"a","part":"x"}]}`:                `"x" is none of`,
		at + `"quotas":[{"name":"a","parent":"b","part":"top"}]}`: "quotas[0].parent: a top has none",
		at + `"quotas":[{"name":"a","parent":"a"}]}`:              "quotas[0].parent: more than 64 levels, or a loop",
		at + `"queues":[{"name":"a"},{"name":"a"}]}`:              `queues[1].name: "a" is there twice`,
		at + `"runs":[` + strings.Repeat("{},", 20000) + `{}]}`:   "runs: 20001 are more than 20000",
		"\x1f\x8bx": "unexpected EOF",
	} {
		_, err := Read(strings.NewReader(text))
		require.ErrorContains(t, err, says, "%.200s", text)
	}
}

func TestADocumentMayBeCompressed(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(`{"version":1,"at":"2026-01-01T00:00:00Z","quotas":[],"queues":[],"units":[]}`))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	s, err := Read(&b)
	require.NoError(t, err)
	require.True(t, epoch.Equal(s.At))
}

// Amounts of time that no world lives to see are cut, so that sums are times.
func TestLongSpansAreCut(t *testing.T) {
	u := &unit.Unit{Key: "a/b", Stated: unit.Stated{MaximumExecution: 1<<63 - 1}}
	got := again(t, &Snapshot{At: epoch, Facts: &virtual.Facts{Units: []*unit.Unit{u}}})
	require.Equal(t, longest, got.Facts.Units[0].MaximumExecution)
}

// drawFacts of three queues with a quota each, and of units that wait or hold.
func drawFacts(t *rapid.T) *virtual.Facts {
	f := &virtual.Facts{
		Config: admission.Config{PartialAdmission: rapid.Bool().Draw(t, "partial")},
		Quotas: []admission.Quota{{Name: "root", Limit: cpu(20), Max: cpu(20), Terms: capacity.Terms{Part: shares.Top}}},
	}
	names := []string{"a", "b", "c"}
	for _, name := range names {
		most := rapid.Int64Range(4, 20).Draw(t, "max")
		q := admission.Quota{Name: name, Parent: "root", Max: cpu(most), Min: cpu(rapid.Int64Range(0, 4).Draw(t, "min"))}
		if q.Limit = q.Max; rapid.Bool().Draw(t, "shared") {
			q.Limit, q.Shared = resources.List{}, true
			q.Terms = capacity.Terms{Part: shares.Sharing, Weight: cpu(most)}
		}
		f.Quotas = append(f.Quotas, q)
		f.Queues = append(f.Queues, queue.Spec{
			Name: name, Policy: rapid.SampledFrom([]string{"Priority", "FIFO", "Block", "Intelligent"}).Draw(t, "policy"),
			MaxPending: -1, MaxAdmitted: rapid.Int32Range(-1, 3).Draw(t, "most"), Threshold: 1,
			Preemption: queue.Preemption{
				Reclaim:    rapid.SampledFrom([]queue.Victims{queue.VictimsNone, queue.VictimsAny}).Draw(t, "reclaims"),
				MinRunTime: queue.DefaultMinRunTime,
			},
		})
	}
	for i := range rapid.IntRange(1, effort.Steps(30)).Draw(t, "units") {
		name := rapid.SampledFrom(names).Draw(t, "queue")
		pods := rapid.Int64Range(1, 3).Draw(t, "pods")
		u := &unit.Unit{
			Key: fmt.Sprintf("ns/u%d", i), UID: fmt.Sprint(i), Queue: name, Quota: name, Active: true, MaxPriority: 9,
			Phase: unit.PhaseEnqueued, Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), Pods: pods,
			Created: epoch.Add(-time.Duration(i) * time.Second), Request: cpu(pods * rapid.Int64Range(1, 3).Draw(t, "size")),
		}
		if pods > 1 && rapid.Bool().Draw(t, "shrinks") {
			u.Sizes = unit.NewSizes([]unit.PodSetSize{{Count: pods, Least: 1, Request: u.Request}})
		}
		if rapid.IntRange(0, 3).Draw(t, "holds") == 0 {
			u.Phase, u.Attempts, u.Admitted = unit.PhaseRunning, 1, epoch.Add(-time.Minute)
			u.SetHeld(u.Request, pods)
		}
		f.Units = append(f.Units, u)
	}
	return f
}

// story is what happened in a world.
type story []string

func (s *story) tell(what string, now time.Time, u *unit.Unit) {
	*s = append(*s, fmt.Sprint(what, now.Sub(epoch), u.Key, u.Held))
}
func (s *story) Admitted(now time.Time, u *unit.Unit) { s.tell("admitted", now, u) }
func (s *story) Evicted(now time.Time, u *unit.Unit)  { s.tell("evicted", now, u) }
func (s *story) Ended(now time.Time, u *unit.Unit)    { s.tell("ended", now, u) }

func storyOf(f *virtual.Facts) *story {
	s := &story{}
	w := virtual.New(f, epoch, func(u *unit.Unit, _ time.Time) (time.Duration, bool) {
		return time.Duration(90+len(u.Key)*int(u.Pods)) * time.Second, true
	}, s)
	for range 2000 {
		if !w.Step() {
			break
		}
	}
	return s
}

// A document does the same as the facts that were written.
func TestAWorldOfADocumentIsTheSame(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		got := again(effort.Plain(t), &Snapshot{At: epoch, Facts: f})
		require.Equal(effort.Plain(t), storyOf(f), storyOf(got.Facts))
	})
}

// Names say nothing, and are the same wherever the same thing is meant.
func TestRenamed(t *testing.T) {
	u := &unit.Unit{
		Key: "secret/secret-job", UID: "1", Queue: "secret-q", Quota: "secret-q", MovesTo: "secret-p",
		Consumer: unit.Consumer{Kind: "Job.v1.batch", Namespace: "secret", Name: "secret-job", UID: "secret-uid"},
		Stated:   unit.Stated{Quotas: "secret-q, secret-p", GangGroup: "secret-a,secret-b", Gangs: "secret-b"},
	}
	s := &Snapshot{At: epoch, Runs: []forecast.Ended{{User: "secret", Queue: "secret-q"}}, Facts: &virtual.Facts{
		Quotas: []admission.Quota{{Name: "secret-q", Parent: "secret-root"}, {Name: "secret-p"}},
		Queues: []queue.Spec{{Name: "secret-q", Quotas: []string{"secret-q"}, Lists: []string{"secret-q", "secret-p"}}},
		Units:  []*unit.Unit{u},
	}}
	before := string(written(t, s))
	numbers := map[string]string{}
	rename := func(name string) string {
		if numbers[name] == "" {
			numbers[name] = fmt.Sprintf("n%d", 9-len(numbers))
		}
		return numbers[name]
	}
	out := s.Renamed(rename)
	require.NotContains(t, string(written(t, out)), "secret")
	require.Equal(t, before, string(written(t, s)), "the snapshot itself stays")
	got := out.Facts.Units[0]
	require.Equal(t, rename("secret")+"/"+rename("secret-job"), got.Key)
	require.Equal(t, rename("secret-q")+","+rename("secret-p"), got.Quotas)
	require.Equal(t, rename("secret-b")+","+rename("secret-a"), got.GangGroup, "sorted")
	require.Equal(t, rename("secret"), out.Runs[0].User)
	require.Equal(t, []string{rename("secret-q"), rename("secret-p")}, out.Facts.Queues[0].Lists)
}

// FuzzRead: whatever a file says, it is refused or a world goes on from it.
func FuzzRead(f *testing.F) {
	at := `{"version":1,"at":"2026-01-01T00:00:00Z",`
	f.Add([]byte(at + `"quotas":[{"name":"root","limit":{"cpu":9},"max":{"cpu":9},"part":"top"},` +
		`{"name":"q","parent":"root","max":{"cpu":9},"min":{"cpu":2},"shared":true,"part":"sharing","weight":{"cpu":9}}],` +
		`"queues":[{"name":"q","policy":"FIFO","maxPending":-1,"maxAdmitted":-1,"preemption":{"reclaim":"any"}}],` +
		`"units":[{"key":"a/b","uid":"1","queue":"q","quota":"q","phase":"Enqueued","request":{"cpu":8},"pods":2,` +
		`"sizes":{"sets":[{"count":2,"least":1,"request":{"cpu":8}}]}},{"key":"a/c","uid":"2","queue":"q","quota":"q",` +
		`"phase":"Running","held":{"cpu":3},"recorded":true,"admitted":"2026-01-01T00:00:00Z","preempts":"1/1"}]}`))
	f.Add([]byte(at + `"units":[]}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		s, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		hour := func(*unit.Unit, time.Time) (time.Duration, bool) { return time.Hour, true }
		w := virtual.New(s.Facts, s.At, hour, &story{})
		for range 50 {
			if !w.Step() {
				return
			}
		}
	})
}
