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

package podbook

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Directions in which the pods of a unit differ from its estimate.
const (
	directionMore = "more"
	directionLess = "less"
)

// compareRequest reports pods whose request differs from the estimate, in a metric and in the log. It does so once for
// each unit, resource and direction. Only resources that the quota limits count: nobody counts others, and the author
// of the pod can choose any names for them.
func compareRequest(
	v *env.Env, limits resources.List, rec *unitbook.Record, pod *corev1.Pod, request resources.List,
) {
	if !rec.Managed || !rec.Object.Phase.Holds() {
		return
	}
	set := rec.Object.SetOf(pod)
	if set == nil {
		return
	}
	each := set.Each()
	news := false
	for _, it := range limits.Items() {
		asked, _ := request.Get(it.Name)
		estimated, _ := each.Get(it.Name)
		d := [2]string{it.Name, directionMore}
		if asked < estimated {
			d[1] = directionLess
		}
		if asked == estimated || rec.Differs[d] {
			continue
		}
		if rec.Differs == nil {
			rec.Act().Differs = map[[2]string]bool{}
		}
		rec.Differs[d], news = true, true
		v.Metrics.Inc(metrics.RequestDifferences, rec.Quota, d[0], d[1])
	}
	if news {
		v.Log.Info("A pod asks for other than its job was admitted with; the ledger follows the pods",
			"queueUnit", rec.Object.Key(), "quota", rec.Quota, "pod", pod.Name,
			"estimated", each.String(), "asked", request.String())
	}
}
