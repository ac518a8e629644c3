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
	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// Directions in which the pods of a unit differ from its estimate.
const (
	directionMore = "more"
	directionLess = "less"
)

// difference of one resource between an estimate and the pods.
type difference struct{ resource, direction string }

// compareRequest says in a metric and in the log, once for each unit, resource and direction, that a pod asks for other
// than was estimated. Only resources that the quota limits are looked at: others are not counted by anybody, and the
// author of the pod may choose any names for them.
func (p *pods) compareRequest(rec *unitRecord, pod *corev1.Pod, request resources.List) {
	if rec == nil || !rec.managed || !rec.object.Phase.Holds() {
		return
	}
	set := rec.object.SetOf(pod)
	if set == nil {
		return
	}
	each := set.Each()
	news := false
	for _, it := range p.quotas.maxOf(rec.quota).Items() {
		asked, _ := request.Get(it.Name)
		estimated, _ := each.Get(it.Name)
		d := difference{it.Name, directionMore}
		if asked < estimated {
			d.direction = directionLess
		}
		if asked == estimated || rec.differs[d] {
			continue
		}
		if rec.differs == nil {
			rec.act().differs = map[difference]bool{}
		}
		rec.differs[d], news = true, true
		p.opts.Metrics.Inc(metrics.RequestDifferences, rec.quota, d.resource, d.direction)
	}
	if news {
		p.log.Info("A pod asks for other than its job was admitted with; the ledger follows the pods",
			"queueUnit", rec.object.Key(), "quota", rec.quota, "pod", pod.Name,
			"estimated", each.String(), "asked", request.String())
	}
}
