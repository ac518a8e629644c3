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

package checker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWritesOfTheAuditLog(t *testing.T) {
	line := func(verb, user, object, code, request string) string {
		return fmt.Sprintf(`{"kind":"Event","verb":%q,"user":{"username":%q},"objectRef":{%s,"namespace":"ns"},`+
			`"responseStatus":{"code":%s},"requestObject":%s}`+"\n", verb, user, object, code, request)
	}
	const (
		pod  = `"resource":"pods","subresource":"binding","name":"x"`
		job  = `"resource":"jobs","name":"j"`
		unit = `"resource":"queueunits","name":"u"`
		of   = `"resource":"queueunits","subresource":"status","name":"u"`
	)
	dequeued := func(attempt int) string { return fmt.Sprintf(`{"status":{"phase":"Dequeued","attempts":%d}}`, attempt) }
	bound, refused := line("create", "scheduler", pod, "201", "{}"), line("create", "scheduler", pod, "409", "{}")
	first, second := line("patch", "scheduler", of, "200", dequeued(1)), line("patch", "scheduler", of, "200", dequeued(2))
	resume := func(user string) string { return line("patch", user, job, "200", `{"spec":{"suspend":false}}`) }
	remove := func(user string) string { return line("delete", user, unit, "200", "{}") }
	for name, test := range map[string]struct {
		log  string
		want Writes
		and  []Rule
	}{
		"each once": {bound + refused + first + second + resume("controller") + remove(garbageCollector) +
			remove("controller"), Writes{Bindings: 1, Dequeues: 2, Resumptions: 1}, nil},
		"bound twice":                  {bound + bound, Writes{Bindings: 2}, []Rule{WrittenTwice}},
		"released twice in an attempt": {first + first, Writes{Dequeues: 2}, []Rule{WrittenTwice}},
		"resumed twice": {
			resume("controller") + resume("controller"), Writes{Resumptions: 2}, []Rule{WrittenTwice},
		},
		"bound by another": {
			strings.ReplaceAll(bound, "scheduler", "x"), Writes{Bindings: 1}, []Rule{ForeignWrite},
		},
		"released by another": {
			strings.ReplaceAll(first, "scheduler", "x"), Writes{Dequeues: 1}, []Rule{ForeignWrite},
		},
		"resumed by another": {resume("scheduler"), Writes{Resumptions: 1}, []Rule{ForeignWrite}},
		"deleted by another": {remove("scheduler"), Writes{}, []Rule{ForeignWrite}},
		"cut off":            {bound[:40] + "\n", Writes{Torn: 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := ReadWrites(strings.NewReader(test.log), Writers{Scheduler: "scheduler", Controller: "controller"})
			require.NoError(t, err)
			require.Equal(t, test.and, rules(w.Violations))
			w.Violations = nil
			require.Equal(t, &test.want, w)
		})
	}
}
