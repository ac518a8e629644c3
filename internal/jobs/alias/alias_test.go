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

package alias

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func selecting(key string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: "on"}}
}

func TestReadWhatJobsOfOtherSystemsName(t *testing.T) {
	table, err := Compile([]Entry{
		{System: Kueue, NamespaceSelector: selecting("kueue"), Queues: map[string]Names{
			"user-queue": {Quota: "a"}, "urgent": {Quota: "a", Queue: "fast"}, "line": {Queue: "fast"},
		}},
		{System: YuniKorn, NamespaceSelector: selecting("yunikorn"), Queues: map[string]Names{"root.sandbox": {Quota: "b"}},
			Paths: []string{"root.org1"}},
		{System: Volcano, NamespaceSelector: selecting("volcano"), Queues: map[string]Names{"test": {Quota: "c"}}},
		{System: Kueue, NamespaceSelector: selecting("all"), Queues: map[string]Names{"user-queue": {Quota: "d"}}},
	})
	require.NoError(t, err)
	kueue := func(name string) map[string]string { return map[string]string{"kueue.x-k8s.io/queue-name": name} }
	atPath := func(name string) map[string]string { return map[string]string{"yunikorn.apache.org/queue": name} }
	yunikorn := atPath("root.sandbox")
	type sets = []map[string]string
	in := func(names ...string) []string { return names }
	legacy, volcano := map[string]string{"queue": "root.sandbox"}, map[string]string{"volcano.sh/queue-name": "test"}
	annotated := Annotations(map[string]string{"x": "y", volcanoAnnotation: "test"})
	ray, other := Names{Path: "root.org1.ray"}, Names{Path: "root.org2.ray"}
	a, b, c, none := Names{Quota: "a"}, Names{Quota: "b"}, Names{Quota: "c"}, Names{}
	for name, tc := range map[string]struct {
		namespace []string
		own       Names
		sets      sets
		want      Names
		err       error
		asks      bool
	}{
		"nothing":               {in("kueue"), none, sets{nil, {"app": "x"}}, none, nil, false},
		"a quota":               {in("kueue"), none, sets{kueue("user-queue")}, a, nil, true},
		"a quota and a queue":   {in("kueue"), none, sets{kueue("urgent")}, Names{Quota: "a", Queue: "fast"}, nil, true},
		"on the template":       {in("kueue"), none, sets{nil, kueue("line")}, Names{Queue: "fast"}, nil, true},
		"switched off":          {nil, none, sets{kueue("user-queue"), yunikorn}, none, nil, false},
		"of another system":     {in("kueue"), none, sets{yunikorn}, none, nil, false},
		"by a later entry":      {in("all"), none, sets{kueue("user-queue")}, Names{Quota: "d"}, nil, true},
		"the first entry":       {in("all", "kueue"), none, sets{kueue("user-queue")}, a, nil, true},
		"YuniKorn":              {in("yunikorn"), none, sets{yunikorn}, b, nil, true},
		"YuniKorn before 1.7":   {in("yunikorn"), none, sets{legacy}, b, nil, true},
		"both of YuniKorn":      {in("yunikorn"), none, sets{yunikorn, legacy}, b, nil, true},
		"Volcano":               {in("volcano"), none, sets{volcano}, c, nil, true},
		"Volcano by annotation": {in("volcano"), none, sets{annotated}, c, nil, true},
		"not listed":            {in("kueue"), none, sets{kueue("other")}, none, ErrUnmapped, false},
		"not listed, and ours":  {in("kueue"), Names{Queue: "q"}, sets{kueue("other")}, none, nil, false},
		"two systems":           {in("kueue", "yunikorn"), none, sets{kueue("line"), yunikorn}, none, ErrAmbiguous, true},
		"two of one system":     {in("kueue"), none, sets{kueue("user-queue"), kueue("urgent")}, none, ErrAmbiguous, true},
		"the same as ours":      {in("kueue"), a, sets{kueue("user-queue")}, a, nil, true},
		"our queue besides":     {in("kueue"), Names{Queue: "q"}, sets{kueue("user-queue")}, a, nil, true},
		"another quota of ours": {in("kueue"), b, sets{kueue("user-queue")}, none, ErrAmbiguous, true},
		"another queue of ours": {in("kueue"), Names{Queue: "q"}, sets{kueue("urgent")}, none, ErrAmbiguous, true},

		"a path":              {in("yunikorn"), none, sets{atPath("root.org1.ray")}, ray, nil, true},
		"a path that we name": {in("yunikorn"), Names{Quota: "ray"}, sets{atPath("root.org1.ray")}, ray, nil, true},
		"a path not allowed":  {in("yunikorn"), none, sets{atPath("root.org2.ray")}, none, ErrUnmapped, false},
		"a longer name":       {in("yunikorn"), none, sets{atPath("root.org10.ray")}, none, ErrUnmapped, false},
		"no path":             {in("yunikorn"), none, sets{atPath("root.org1..ray")}, none, ErrUnmapped, false},
		"a path of Kueue":     {in("kueue"), none, sets{kueue("root.org1.ray")}, none, ErrUnmapped, false},
		"a path, our quota":   {in("yunikorn"), b, sets{atPath("root.org1.ray")}, none, ErrAmbiguous, true},
		"a path, our path":    {in("yunikorn"), other, sets{atPath("root.org1.ray")}, none, ErrAmbiguous, true},
		"a quota, our path":   {in("kueue"), other, sets{kueue("user-queue")}, none, ErrAmbiguous, true},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := map[string]string{}
			for _, key := range tc.namespace {
				namespace[key] = "on"
			}
			got, err := table.Read(tc.own, namespace, tc.sets...)
			require.ErrorIs(t, err, tc.err)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.asks, table.Asks(namespace, tc.sets...))
		})
	}
}

func TestWhatElseJobsOfOtherSystemsAskFor(t *testing.T) {
	table, err := Compile([]Entry{
		{System: Kueue, NamespaceSelector: selecting("kueue"), Queues: map[string]Names{"q": {Quota: "a"}},
			Priorities: map[string]int32{"high": 7}},
		{System: YuniKorn, NamespaceSelector: selecting("yunikorn"), Queues: map[string]Names{"q": {Quota: "b"}}},
	})
	require.NoError(t, err)
	type set = map[string]string
	seven := int32(7)
	kueue := func(more set) set {
		more["kueue.x-k8s.io/queue-name"] = "q"
		return more
	}
	for name, tc := range map[string]struct {
		namespace string
		job       set
		others    []set
		want      Further
		ignored   string
	}{
		"nothing more": {"kueue", kueue(set{}), nil, Further{}, ""},
		"time and priority": {"kueue", kueue(set{maximumTime: "60", priorityClass: "high"}), nil,
			Further{MaximumTime: "60", Priority: &seven}, ""},
		"another class":      {"kueue", kueue(set{priorityClass: "low"}), nil, Further{}, priorityClass + " has no effect"},
		"an alias elsewhere": {"yunikorn", kueue(set{maximumTime: "60"}), nil, Further{}, ""},
		"task groups": {"yunikorn", set{"queue": "q", maximumTime: "60", "applicationId": "x"},
			[]set{{"yunikorn.apache.org/task-groups": "[]"}}, Further{}, "yunikorn.apache.org/task-groups has no effect"},
		"task groups, by another system": {"kueue", kueue(set{}), []set{{"yunikorn.apache.org/task-groups": "[]"}},
			Further{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := table.Further(set{tc.namespace: "on"}, tc.job, []set{tc.job}, append(tc.others, tc.job))
			require.Contains(t, got.Ignored, tc.ignored)
			require.Equal(t, tc.ignored == "", got.Ignored == "")
			got.Ignored = ""
			require.Equal(t, tc.want, got)
		})
	}
}

func TestEntriesAreChecked(t *testing.T) {
	good := Entry{System: Kueue, NamespaceSelector: selecting("on"), Queues: map[string]Names{"q": {Quota: "a"}}}
	for name, tc := range map[string]struct {
		edit func(*Entry)
		want string
	}{
		"system":      {func(e *Entry) { e.System = "Slurm" }, "none of Kueue, YuniKorn and Volcano"},
		"no selector": {func(e *Entry) { e.NamespaceSelector = nil }, "by a label"},
		"selects all": {func(e *Entry) { e.NamespaceSelector = &metav1.LabelSelector{} }, "by a label"},
		"bad selector": {func(e *Entry) {
			e.NamespaceSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}
		}, "Near"},
		"priorities": {func(e *Entry) { e.System, e.Priorities = Volcano, map[string]int32{"high": 1} },
			"Volcano has no WorkloadPriorityClasses"},
		"no queues":     {func(e *Entry) { e.Queues = nil }, "lists no queue"},
		"no path":       {func(e *Entry) { e.Paths = []string{"root", "ray"} }, "paths[1]: it is not the path of a quota"},
		"names nothing": {func(e *Entry) { e.Queues = map[string]Names{"q": {}} }, "neither a quota nor a queue"},
		"no label":      {func(e *Entry) { e.Queues = map[string]Names{"q": {Quota: "a b"}} }, "not the value of a label"},
	} {
		t.Run(name, func(t *testing.T) {
			e := good
			e.NamespaceSelector = good.NamespaceSelector.DeepCopy()
			tc.edit(&e)
			_, err := Compile([]Entry{good, e})
			require.ErrorContains(t, err, "aliases[1]")
			require.ErrorContains(t, err, tc.want)
		})
	}
}
