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

package jobplan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/survey"
)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func limited(parent string, names ...corev1.ResourceName) survey.Quota {
	return survey.Quota{Parent: parent, Limited: sets.New(names...)}
}

// The controller warns when it queues a job that cannot run. The unit keeps the words for who asks why the job waits.
func TestWhatCannotBeIsSaidEarly(t *testing.T) {
	gang := func(least string) map[string]any {
		return map[string]any{extension.AnnotationGangName: "g", extension.AnnotationGangMinNum: least}
	}
	ofGang := func(s *scene, least string) *scene {
		return s.job(gang(least), "spec", "template", "metadata", "annotations")
	}
	with := func(c *survey.Cluster) func(*scene) *scene {
		return func(s *scene) *scene { return s.with(func(o *Situation) { o.Cluster = c }) }
	}
	for name, c := range map[string]struct {
		edit func(*scene) *scene
		want string
	}{
		"nothing is known":   {with(nil), ""},
		"gang that is whole": {func(s *scene) *scene { return ofGang(s, "2") }, ""},
		"gang that is short": {func(s *scene) *scene { return ofGang(s, "3") }, `asks for 3 pods and the job has 2`},
		"gang of no number":  {func(s *scene) *scene { return ofGang(s, "many") }, ""},
		"more pods at the least than in all": {func(s *scene) *scene {
			return s.job(map[string]any{"koord-queue/min-parallelism": "11"}, "metadata", "annotations")
		}, "annotation koord-queue/min-parallelism asks for at least 11 pods of"},
		"no nodes": {with(&survey.Cluster{}), ""},
		"some node has it": {with(&survey.Cluster{
			Nodes: sized("100m", "1")}), ""},
		"no node has it": {with(&survey.Cluster{
			Nodes: sized("100m", "400m")}),
			"500m of cpu, and no node that is there now has as much with all else that it asks for (400m)"},
		"no node has its labels": {selecting("pool", "gpu", ""), "no node that is there now has the labels and names that " +
			"a pod of j selects (pool=gpu)"},
		"a node has its labels": {selecting("pool", "gpu", "1"), ""},
		"the node with its labels is too small": {selecting("pool", "gpu", "400m"),
			"500m of cpu, and no node that is there now has as much"},
		"no node has its kind of device, and no quota names it": {func(s *scene) *scene {
			return s.job([]any{map[string]any{"name": "c", "resources": map[string]any{
				"requests": map[string]any{"cpu": "500m", "example.com/fpga": "1"},
				"limits":   map[string]any{"example.com/fpga": "1"},
			}}}, "spec", "template", "spec", "containers").with(func(o *Situation) {
				o.Cluster = &survey.Cluster{Nodes: sized("1"), Quotas: map[string]survey.Quota{"a": limited("", "cpu")}}
			})
		}, "1 of example.com/fpga, and no node that is there now has as much with all else that it asks for (0)\n" +
			`quota "a" has no max for example.com/fpga`},
		"it names its node":   {selecting(corev1.LabelHostname, "n", ""), ""},
		"no quota":            {with(&survey.Cluster{Quotas: map[string]survey.Quota{"b": limited("")}}), ""},
		"its quota limits it": {with(&survey.Cluster{Quotas: map[string]survey.Quota{"a": limited("", "cpu")}}), ""},
		"its parent limits it": {with(&survey.Cluster{Quotas: map[string]survey.Quota{
			"a": limited("b"), "b": limited("", "cpu")}}), ""},
		"nothing limits it": {with(&survey.Cluster{Quotas: map[string]survey.Quota{
			"a": limited("b", "memory"), "b": limited("a")}}), `quota "a" has no max for cpu, nor has one above it`},
		"its quota is a parent": {with(&survey.Cluster{Quotas: map[string]survey.Quota{
			"a": {IsParent: true, Limited: sets.New[corev1.ResourceName]("cpu")}}}),
			`quota "a" is a parent of quotas: Koordinator's webhook refuses its pods`},
	} {
		t.Run(name, func(t *testing.T) {
			actions := c.edit(unqueued(t)).decide().Do
			kept, told := actions[0].(CreateUnit).Unit.Annotations[v1alpha1.AnnotationDoubts], actions[1:]
			if c.want == "" {
				require.Empty(t, kept)
				require.Empty(t, told)
				return
			}
			said, wanted := strings.Split(kept, "\n"), strings.Split(c.want, "\n")
			require.Len(t, said, len(wanted))
			for i := range wanted {
				require.Contains(t, said[i], wanted[i])
			}
			require.Len(t, told, 1, "of events that differ in their words alone, the recorder keeps those of the first")
			tell, ok := told[0].(Tell)
			require.True(t, ok)
			require.Equal(t, event.Warning("Doubtful", "Queue", strings.Join(said, "; ")), tell.Event)
		})
	}
}

// sized are nodes without labels.
func sized(cpu ...string) (nodes []survey.Node) {
	for _, amount := range cpu {
		nodes = append(nodes, survey.Node{Size: amounts("cpu", amount), Labels: map[string]string{}})
	}
	return nodes
}

// selecting has the pods select nodes by a label, and one of these nodes there if it has a size.
func selecting(key, value, size string) func(*scene) *scene {
	nodes := sized("1")
	if size != "" {
		nodes = append(nodes, survey.Node{Size: amounts("cpu", size), Labels: map[string]string{key: value}})
	}
	return func(s *scene) *scene {
		s.job(map[string]any{key: value}, "spec", "template", "spec", "nodeSelector")
		return s.with(func(o *Situation) { o.Cluster = &survey.Cluster{Nodes: nodes} })
	}
}

// Doubts about a job as it was say nothing of what it has become, and its owner cannot write them.
func TestDoubtsEndWithAChangeOfTheJob(t *testing.T) {
	s := unqueued(t).job(map[string]any{v1alpha1.AnnotationDoubts: "forged"}, "metadata", "annotations").
		with(func(o *Situation) {
			o.Cluster = &survey.Cluster{Nodes: sized("400m")}
		})
	s = created(t, s)
	require.Contains(t, s.Unit.Annotations[v1alpha1.AnnotationDoubts], "no node that is there now has as much")
	require.NotContains(t, s.Unit.Annotations[v1alpha1.AnnotationDoubts], "forged")
	s.job(int64(1), "spec", "completions")
	step, ok := s.decide().Do[0].(PatchUnit)
	require.True(t, ok, "the unit asks for one pod")
	require.NotContains(t, step.After.Annotations, v1alpha1.AnnotationDoubts)
}

// A job that its owner holds is told as well, and need not wait for the end of the hold. The hold is no change of what
// it asks for.
func TestAJobOnHoldIsToldOfDoubts(t *testing.T) {
	s := unqueued(t).job(map[string]any{v1alpha1.AnnotationHold: "true"}, "metadata", "annotations").
		with(func(o *Situation) { o.Cluster = &survey.Cluster{Nodes: sized("400m")} })
	d := s.decide()
	require.Len(t, d.Do, 2)
	require.Equal(t, "Doubtful", d.Do[1].(Tell).Event.Reason)
	s.Unit = d.Do[0].(CreateUnit).Unit
	s.Unit.UID, s.Unit.ResourceVersion, s.Unit.Status.Phase, s.FreshUnit = "unit-1", "10", v1alpha1.PhaseEnqueued, true
	const small = "no node that is there now has as much"
	require.Contains(t, s.Unit.Annotations[v1alpha1.AnnotationDoubts], small)
	for _, hold := range []map[string]any{{}, {v1alpha1.AnnotationHold: "true"}, {}} {
		s.job(hold, "metadata", "annotations")
		step, ok := s.decide().Do[0].(PatchUnit)
		require.True(t, ok, describe(s.decide()))
		s.Unit = step.After
		require.Contains(t, s.Unit.Annotations[v1alpha1.AnnotationDoubts], small)
	}
	s.job(int64(1), "spec", "completions")
	require.NotContains(t, s.decide().Do[0].(PatchUnit).After.Annotations, v1alpha1.AnnotationDoubts)
}
