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

package jobs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

func TestGangGroups(t *testing.T) {
	const key = "gang.scheduling.koordinator.sh/"
	plain := func(template, job string) string {
		return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: team, annotations: {%s}}
spec: {parallelism: 2, template: {metadata: {annotations: {%s}}, spec: {}}}
`, job, template)
	}
	annotation := func(name, value string) string { return fmt.Sprintf("%s%s: '%s'", key, name, value) }
	named := annotation("name", "b") + ", "
	many := make([]string, jobkind.MaxGangs+1)
	for i := range many {
		many[i] = fmt.Sprintf("team/g%d", i)
	}
	for name, tc := range map[string]struct {
		text     string
		everyJob bool
		want     *GangGroup
		err      string
	}{
		"pods that name both": {plain(named+annotation("groups", `["team/c","team/a","team/b"]`), ""), false,
			&GangGroup{All: []string{"a", "b", "c"}, Own: []string{"b"}}, ""},
		"a gang that is made": {plain("", annotation("groups", `["team/j","team/a"]`)), true,
			&GangGroup{All: []string{"a", "j"}, Own: []string{"j"}}, ""},
		"a gang that is made, the pods name the group": {plain(annotation("groups", `["team/j","team/a"]`), ""), true,
			&GangGroup{All: []string{"a", "j"}, Own: []string{"j"}}, ""},
		"named twice": {plain(named+annotation("groups", `["team/b","team/a","team/b"]`), ""), false,
			&GangGroup{All: []string{"a", "b"}, Own: []string{"b"}}, ""},
		"none":                      {plain(named, ""), false, nil, ""},
		"none that pods would name": {plain(named, annotation("groups", `["team/a"]`)), false, nil, ""},
		"an empty name for none":    {plain(named+annotation("groups", ``), ""), false, nil, ""},
		"of its own gang alone":     {plain(named+annotation("groups", `["team/b"]`), ""), false, nil, ""},
		"no list":                   {plain(named+annotation("groups", `team/b`), ""), false, nil, "no list"},
		"of another namespace": {plain(named+annotation("groups", `["team/b","other/b"]`), ""), false,
			nil, "another namespace"},
		"of no namespace": {plain(named+annotation("groups", `["team/b","c"]`), ""), false,
			nil, "another namespace"},
		"a name that is none": {plain(named+annotation("groups", `["team/b","team/a,c"]`), ""), false,
			nil, "no name"},
		"a name with a slash": {plain(named+annotation("groups", `["team/b","team/a/c"]`), ""), false,
			nil, "no name"},
		"of others": {plain(named+annotation("groups", `["team/c","team/a"]`), ""), false,
			nil, "own gangs"},
		"nobody is of it": {plain(named+annotation("groups", `[]`), ""), false, nil, "own gangs"},
		"absurdly many": {plain(named+annotation("groups", `["`+strings.Join(many, `","`)+`"]`), ""), false,
			nil, "17 gangs"},
		"pods that are in none": {plain("", annotation("groups", `["team/j","team/a"]`)), false, nil, "in no gang"},
		"one pod, of which no gang is": {
			strings.Replace(plain("", annotation("groups", `["team/j","team/a"]`)), "parallelism: 2", "parallelism: 1", 1),
			true, nil, "in no gang",
		},
		"a PodGroup describes it": {strings.Replace(plain(annotation("groups", `["team/j","team/a"]`), ""),
			"template: {metadata: {", "template: {metadata: {labels: {pod-group.scheduling.sigs.k8s.io: x}, ", 1),
			false, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			kind, object := job(t, tc.text)
			check := func(object *unstructured.Unstructured) {
				got, err := GangGroupOf(Open(kind, object), tc.everyJob, "j")
				require.Equal(t, tc.want, got)
				if tc.err == "" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, ErrGangGroup)
					require.ErrorContains(t, err, tc.err)
				}
				require.True(t, NamesGangGroup(Open(kind, object)) || got == nil && err == nil)
			}
			check(object)
			compact, err := compact.Expand(compact.Job(kind, object.DeepCopy(), false))
			require.NoError(t, err)
			check(compact)
		})
	}
}
