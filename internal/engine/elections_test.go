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

package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Units that name the job of another unit cost its pods nothing: they are told when another unit stands for the job.
func TestUnitsThatNameOneJobDoNotHaveItsPodsTold(t *testing.T) {
	for name, shape := range map[string]func(u *unstructured.Unstructured){
		"under other names": func(*unstructured.Unstructured) {},
		"under its name": func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "job", "spec", "consumerRef", "name")
		},
		"of a kind that is not managed": func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, "Other", "spec", "consumerRef", "kind")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 10)
			told := 0
			count := r.engine.pods.Scheduler.PodRequest
			r.engine.pods.Scheduler.PodRequest = func(pod *corev1.Pod) corev1.ResourceList {
				told++
				return count(pod)
			}
			const pods, units = 50, 100
			r.job("job", "uid")
			own := r.unit("job", 1, withConsumer("uid"))
			for i := range pods {
				r.drive.FeedPod(podFor(fmt.Sprint("p", i), "uid", "1"), false, false)
			}
			r.step()
			require.GreaterOrEqual(t, told, pods)
			told = 0
			var keys []string
			for i := range units {
				keys = append(keys, r.unit(fmt.Sprintf("made-up-%03d", i), 1, withConsumer("uid"), shape))
				r.step()
			}
			for _, key := range keys {
				r.api.edit(key, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"edited": "yes"}) })
				r.feed(key).step()
			}
			for _, key := range keys {
				r.drive.FeedUnit(r.api.get(key), true)
				r.step()
			}
			require.LessOrEqual(t, told, 2*pods, "%d events of units beside %d pods", 3*units, pods)
			require.Equal(t, own, unitOf(r, "pod-p0"))
			require.False(t, resources.List{}.Same(toldOf(r, "pod-p0").Request))
			r.sound()
		})
	}
}

// Anybody may make pods that name the UID of a job as that of another kind: the job's own pods are told all the same.
func TestPodsThatNameAnotherKindHideNoJob(t *testing.T) {
	r := ready(t, 10)
	for i := range 50 {
		made := podFor(fmt.Sprint("made-up-", i), "uid", "1")
		made.OwnerReferences[0].Kind = "Other"
		r.drive.FeedPod(made, false, false)
	}
	r.drive.FeedPod(podFor("p", "uid", "1"), false, false)
	r.step()
	r.job("job", "uid")
	own := r.unit("job", 1, withConsumer("uid"))
	r.step()
	require.Equal(t, own, unitOf(r, "pod-p"))
	r.sound()
}
