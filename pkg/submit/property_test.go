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

package submit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// hostile are values that a user may write where a name is expected.
var hostile = []string{
	"team", "a.b", "", "UPPER", "-x", "x-", "a/b", "Ω", "a\nb", `"`, "{{.User}}", strings.Repeat("x", 63),
	strings.Repeat("x", 64), strings.Repeat("y", 300), "root..x", "root.x", "a,b", "$", "user@example.com",
}

func pick[T any](random *rand.Rand, list []T) T { return list[random.IntN(len(list))] }

func randomJob(random *rand.Rand, d Driver) Job {
	if random.IntN(2) == 0 {
		job := fullJob(d)
		job.User = pick(random, hostile)
		job.Gang.Soft = random.IntN(2) == 0
		return job
	}
	job := Job{
		Queue: pick(random, hostile), User: pick(random, hostile), NonPreemptible: random.IntN(2) == 0,
		MaxRunTime: pick(random, []time.Duration{0, 0, time.Second, -time.Second, time.Millisecond, 1 << 62}),
	}
	if random.IntN(2) == 0 {
		job.Gang = &Gang{Timeout: pick(random, []time.Duration{0, time.Minute, -time.Minute, time.Millisecond, 1 << 62})}
	}
	for range random.IntN(4) {
		job.Groups = append(job.Groups, pick(random, hostile))
	}
	if random.IntN(4) == 0 {
		job.PodGroup = &PodGroup{Name: pick(random, hostile), Size: pick(random, []int32{-1, 0, 1, 3, 1 << 30})}
	}
	return job
}

var randomValues = []any{
	nil, true, int64(0), int64(3), int64(-1), int64(1 << 40), 1.5, "", "x", "Ω", []any{}, []any{"x"}, Object{},
	Object{"a": "b"},
	"default-scheduler", "other", "1e99999999", strings.Repeat("z", 70),
}

func mutate(random *rand.Rand, value any) {
	switch v := value.(type) {
	case Object:
		for key, item := range v {
			switch random.IntN(40) {
			case 0:
				v[key] = podset.Copy(pick(random, randomValues))
			case 1:
				delete(v, key)
			default:
				mutate(random, item)
			}
		}
		if random.IntN(40) == 0 {
			v[pick(random, []string{"labels", "annotations", "replicas", "minReplicas", "schedulerName", "suspend"})] =
				podset.Copy(pick(random, randomValues))
		}
	case []any:
		for _, item := range v {
			mutate(random, item)
		}
	}
}

// TestLabelsAreTheSame on retries and for any order of calls, for users and objects of any kind. A driver writes
// everything that the documentation of its system asks for.
func TestLabelsAreTheSame(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	random := rand.New(rand.NewPCG(1, 2))
	labelled := map[string]int{}
	for _, file := range objectFiles(t) {
		for _, name := range Drivers() {
			d := driverOf(t, name)
			for range rounds / 30 {
				object := readObject(t, file)
				if random.IntN(3) > 0 {
					mutate(random, object)
				}
				if label(t, d, randomJob(random, d), object) {
					labelled[name]++
				}
			}
		}
	}
	for _, name := range Drivers() {
		if labelled[name] < 10 {
			t.Errorf("%s labelled %d objects", name, labelled[name])
		}
	}
}

// label checks one object; it is false if the driver refuses it.
func label(t *testing.T, d Driver, job Job, object Object) bool {
	t.Helper()
	before := podset.Copy(object).(Object)
	out, groups, err := d.Label(job, object)
	if !reflect.DeepEqual(before, object) {
		t.Fatalf("%s changed its argument: %v", d.Name(), object)
	}
	if err != nil {
		return false
	}
	fail := func(format string, args ...any) {
		text, _ := json.Marshal(before)
		t.Fatalf("%s: %+v: %s: %s", d.Name(), job, text, fmt.Sprintf(format, args...))
	}
	again, moreGroups, err := d.Label(job, out)
	if err != nil || !reflect.DeepEqual(out, again) || !reflect.DeepEqual(groups, moreGroups) {
		fail("a second call gives %v %v", again, err)
	}
	other, err := d.CreateGroupLabels(job, object)
	if err == nil {
		other, err = d.CreateLabels(job, other)
	}
	if err == nil {
		other, err = d.SetSchedulerName(other)
	}
	if err != nil || !reflect.DeepEqual(out, other) {
		fail("another order of calls gives %v %v", other, err)
	}
	if d.Name() == "none" {
		return true
	}
	sets, err := PodSets(out)
	if err != nil {
		fail("it cannot be read: %v", err)
	}
	for i := range sets {
		want, err := d.GetGroupLabels(job, object, sets[i].Name)
		if err != nil {
			fail("%v", err)
		}
		if sets[i].writable() {
			for key, value := range want.Annotations {
				if have := sets[i].found.Metadata(podset.AnnotationsKey)[key]; have != value {
					fail("%s has %q, want %q", key, have, value)
				}
			}
		}
	}
	for _, problem := range problems(d, job, out, sets, groups) {
		fail("%s", problem)
	}
	return true
}

// problems are what the documentation of the system forbids.
func problems(d Driver, job Job, object Object, sets []PodSet, groups []Object) (all []string) {
	say := func(bad bool, format string, args ...any) {
		if bad {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	own := podset.StringMap(podset.Lookup(object, podset.PathOf(".metadata.labels")))
	prefix := map[string]string{
		"yunikorn": yunikorn, "kueue": kueue, "kai": "kai.scheduler/", "volcano": "volcano.sh/", "koord": "quota.scheduling.",
	}[d.Name()]
	for key, value := range own {
		ours := prefix != "" && strings.HasPrefix(key, prefix)
		say(ours && len(validation.IsValidLabelValue(value)) > 0, "label %s=%q", key, value)
	}
	names := make([]string, 0, len(groups))
	for _, g := range groups {
		name, _ := podset.Lookup(g, podset.PathOf(".metadata.name")).(string)
		names = append(names, name)
		say(len(validation.IsDNS1123Subdomain(name)) > 0, "a group is called %q", name)
	}
	for i := range sets {
		labels := sets[i].found.Metadata(podset.LabelsKey)
		annotations := sets[i].found.Metadata(podset.AnnotationsKey)
		switch d.Name() {
		case "yunikorn":
			if sets[i].writable() {
				yunikornProblems(say, job, own, labels, annotations)
			}
		case "koord":
			koordProblems(say, annotations)
		case "volcano":
			name, member := annotations[volcanoGroup]
			say(member && len(groups) > 0 && !slices.Contains(names, name), "the group %q does not exist", name)
		case "scheduler-plugins":
			name, member := labels[schedulerPluginsGroup]
			say(member && len(groups) > 0 && !slices.Contains(names, name), "the group %q does not exist", name)
		case "kai":
			say(sets[i].writable() && labels[kaiQueue] != job.Queue, "a pod without a queue stays pending")
		case "kueue":
			say(labels[kueue+"pod-group-total-count"] != "", "the total count is an annotation")
		}
		for _, key := range []string{"role-hash", "is-group-workload"} {
			_, there := annotations[kueue+key]
			say(there, "%s is Kueue's own", key)
		}
	}
	for _, g := range groups {
		if least, there := podset.Lookup(g, podset.PathOf(".spec.minMember")).(int64); there {
			say(least < 1, "minMember is %d", least)
		}
		if templates, there := podset.Lookup(g, podset.PathOf(".spec.podGroupTemplates")).([]any); there {
			say(len(templates) < 1 || len(templates) > 8, "%d templates of PodGroups", len(templates))
		}
	}
	return all
}

// yunikornProblems: https://yunikorn.apache.org/docs/user_guide/gang_scheduling and labels_and_annotations_in_yunikorn.
func yunikornProblems(say func(bool, string, ...any), job Job, own, labels, annotations map[string]string) {
	for _, key := range []string{"app-id", "queue"} {
		say(own[yunikorn+key] != labels[yunikorn+key], "%s of object and pod differ", key)
	}
	say(labels[yunikorn+"app-id"] == "", "no application")
	if text := annotations[yunikorn+"user.info"]; job.User != "" {
		var user struct {
			User   string
			Groups []string
		}
		say(json.Unmarshal([]byte(text), &user) != nil || user.User != job.User, "user.info is %q", text)
	}
	text, there := annotations[yunikorn+"task-groups"]
	name := annotations[yunikorn+"task-group-name"]
	if job.Gang == nil || !there || name == "x" {
		return
	}
	var groups []struct {
		Name        string
		MinMember   int
		MinResource map[string]string
	}
	if err := json.Unmarshal([]byte(text), &groups); err != nil {
		return // the object had an annotation of its own
	}
	seen := map[string]bool{}
	for _, g := range groups {
		say(g.MinMember < 1, "group %q has %d members", g.Name, g.MinMember)
		say(seen[g.Name] || len(validation.IsDNS1123Label(g.Name)) > 0, "group %q", g.Name)
		seen[g.Name] = true
		for key, value := range g.MinResource {
			_, err := resource.ParseQuantity(value)
			say(err != nil, "%s is %q", key, value)
		}
	}
	say(name != "" && !seen[name], "no group is called %q", name)
}

// koordProblems: the annotations of a gang, in Koordinator's documentation of gang scheduling.
func koordProblems(say func(bool, string, ...any), annotations map[string]string) {
	text, there := annotations[koordGang+"min-available"]
	if !there {
		return
	}
	var least, total int
	_, err := fmt.Sscan(text+" "+annotations[koordGang+"total-number"], &least, &total)
	say(err != nil || least < 1 || total < least, "at least %q of %q pods", text, annotations[koordGang+"total-number"])
	mode := annotations[koordGang+"mode"]
	say(mode != "Strict" && mode != "NonStrict", "mode %q", mode)
	if wait, there := annotations[koordGang+"waiting-time"]; there {
		_, err := time.ParseDuration(wait)
		say(err != nil, "waiting time %q", wait)
	}
}
