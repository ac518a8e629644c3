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

package auditlog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"sigs.k8s.io/yaml"
)

const (
	bind = `{"kind":"Event","verb":"create","objectRef":{"resource":"pods","subresource":"binding",` +
		`"namespace":"ns","name":"p"},` +
		`"responseStatus":{"code":201}}`
	dequeue = `{"kind":"Event","verb":"patch",` +
		`"objectRef":{"resource":"queueunits","subresource":"status","namespace":"ns","name":"u"},` +
		`"responseStatus":{"code":409},"requestObject":{"status":{"phase":"Dequeued","attempts":2}}}`
)

func read(t *testing.T, lines ...string) (events []Event, torn int) {
	t.Helper()
	torn, err := Read(strings.NewReader(strings.Join(lines, "\n")), func(e *Event) { events = append(events, *e) })
	require.NoError(t, err)
	return events, torn
}

func TestRead(t *testing.T) {
	events, torn := read(t, bind, dequeue)
	require.Zero(t, torn)
	require.Len(t, events, 2)
	require.True(t, events[0].Succeeded())
	require.Equal(t, "pods/binding", events[0].Kind())
	require.Equal(t, "ns/p", events[0].Object())
	require.Nil(t, events[0].RequestObject.Status.Phase)
	require.False(t, events[1].Succeeded(), "a conflict wrote nothing")
	require.Equal(t, "Dequeued", *events[1].RequestObject.Status.Phase)
	require.EqualValues(t, 2, events[1].RequestObject.Status.Attempts)
}

func TestWhatIsBehindATornLineIsRead(t *testing.T) {
	events, torn := read(t, bind[:40]+dequeue, bind)
	require.Equal(t, 1, torn)
	require.Len(t, events, 2)
	require.Equal(t, "queueunits/status", events[0].Kind())

	events, torn = read(t, bind, dequeue[:60])
	require.Equal(t, 1, torn, "the last line of a server that was killed")
	require.Len(t, events, 1)
}

func TestPoliciesAreWhatTheAPIServerReads(t *testing.T) {
	for name, text := range map[string]string{
		"Writes": Writes, "WritesAndWatches": WritesAndWatches, "Decisions": Decisions,
	} {
		t.Run(name, func(t *testing.T) {
			policy := &auditv1.Policy{}
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), policy))
			require.Equal(t, auditv1.LevelNone, policy.Rules[len(policy.Rules)-1].Level, "the rest is left out")
			for _, rule := range policy.Rules[:len(policy.Rules)-1] {
				require.NotEqual(t, auditv1.LevelNone, rule.Level)
				require.True(t, sets.New("create", "update", "patch", "delete", "deletecollection", Watch).HasAll(rule.Verbs...))
			}
		})
	}
}
