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
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
)

// The library for submitters evaluates a part of CEL itself. It has to find the pod sets that the queue finds in
// objects of operators, and in copies with dropped or replaced fields.
func TestSubmittersReadTheSamePodSets(t *testing.T) {
	files, err := filepath.Glob("testdata/kinds/*/*.yaml")
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	compared := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		object := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(text, &object.Object), file)
		i := slices.IndexFunc(jobkind.Builtin(), func(k jobkind.Kind) bool { return k.GVK == object.GroupVersionKind() })
		if i < 0 || object.GetKind() == "Pod" || object.GetKind() == "TrainJob" {
			continue // golden.yaml, pods, and what has its pods in a child
		}
		kind := &jobkind.Builtin()[i]
		sameGang(t, kind, object.DeepCopy(), file)
		for range 200 {
			sameSets(t, kind, object, file)
			compared[kind.String()]++
			if object = object.DeepCopy(); !mutate(random, object.Object) {
				break
			}
		}
	}
	require.Greater(t, len(compared), 12, "kinds that were compared: %v", compared)
}

func sameSets(t *testing.T, kind *jobkind.Kind, object *unstructured.Unstructured, file string) {
	t.Helper()
	text, err := json.Marshal(object.Object)
	require.NoError(t, err)
	job := Open(kind, object)
	theirs, err := submit.PodSets(object.Object)
	ours, ourErr := job.podSets()
	if err != nil || ourErr != nil {
		// The queue reads a template into its type, so it refuses more.
		_, ourErr = job.PodSets()
		require.Error(t, ourErr, "%s: %v: %s", file, err, text)
		return
	}
	byName := map[string]submit.PodSet{}
	for _, s := range theirs {
		byName[s.Name] = s
	}
	require.LessOrEqual(t, len(byName), len(ours))
	for i := range ours {
		s := &ours[i]
		count, least, err := s.Counts()
		require.NoError(t, err)
		template, err := s.ReadTemplate()
		require.NoError(t, err)
		have, there := byName[s.Called]
		if kind.GVK.Kind == "LeaderWorkerSet" && (!there || have.Count != count) {
			continue // leaders and workers of one template are one group to submitters
		}
		require.True(t, there, "%s: %q: %s", file, s.Called, text)
		if least == nil {
			least = &count
		}
		require.Equal(t, []any{count, *least, s.Early, s.Later.Holds(object.Object)},
			[]any{have.Count, have.MinCount, have.Early, have.Later}, "%s: %q: %s", file, s.Called, text)
		require.Equal(t, template, have.Template, "%s: %q: %s", file, s.Called, text)
	}
}

// sameGang: the gang that a submitter asks for has the minimum of the gang that the queue would make.
func sameGang(t *testing.T, kind *jobkind.Kind, object *unstructured.Unstructured, file string) {
	t.Helper()
	EditOf(kind, object).RestoreTemplates(nil)
	gangs := Gangs(Open(kind, object), true)
	driver, err := submit.New(submit.Options{Driver: "koord"})
	require.NoError(t, err)
	sets, err := submit.PodSets(object.Object)
	require.NoError(t, err)
	for i := range sets {
		have, err := driver.GetGroupLabels(submit.Job{Gang: &submit.Gang{}}, object.Object, sets[i].Name)
		require.NoError(t, err)
		want := ""
		for _, g := range gangs {
			if slices.Contains(g.PodSets, sets[i].Name) {
				want = g.Annotations("")[extension.AnnotationGangMinNum]
			}
		}
		require.Equal(t, want, have.Annotations[extension.AnnotationGangMinNum], "%s: %s", file, sets[i].Name)
	}
}

// mutate drops or replaces a field that descriptors look at, and says whether there was one.
func mutate(random *rand.Rand, object map[string]any) bool {
	spec, _ := object["spec"].(map[string]any)
	var places []func()
	collect(random, spec, 0, &places)
	if len(places) == 0 {
		return false
	}
	places[random.IntN(len(places))]()
	return true
}

var replacements = []any{
	true, false, "", "true", "SidecarMode", "K8sJobMode", "HTTPMode", "InOrder", nil, int64(0), int64(2), map[string]any{},
	map[string]any{"enabled": true}, map[string]any{"startupPolicyOrder": "InOrder"}, []any{},
	map[string]any{"spark.dynamicAllocation.enabled": "true"},
}

var fieldsOfConditions = []string{
	"enableInTreeAutoscaling", "submissionMode", "dynamicAllocation", "startupPolicy", "dependsOn", "minReplicas",
	"replicas", "sparkConf",
}

func collect(random *rand.Rand, fields map[string]any, depth int, places *[]func()) {
	if depth > 4 {
		return
	}
	for _, key := range append(slices.Sorted(maps.Keys(fields)), fieldsOfConditions...) {
		*places = append(*places, func() { fields[key] = replacements[random.IntN(len(replacements))] })
		switch value := fields[key].(type) {
		case map[string]any:
			if key != "template" {
				collect(random, value, depth+1, places)
			}
		case []any:
			for _, item := range value {
				if below, ok := item.(map[string]any); ok {
					collect(random, below, depth+1, places)
				}
			}
		}
		if fields[key] != nil {
			*places = append(*places, func() { delete(fields, key) })
		}
	}
}
