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

// Package formermetrics serves metrics of the stand-alone Koord-Queue under their former names and labels. Each scrape
// computes their values from QueueUnits, as Koord-Queue did.
package formermetrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// The metrics. Each has one or two labels. Amounts are in cores, bytes and whole units.
var (
	active    = define("queueunits_in_active_queue", "Number of units that wait in a queue.", "queue")
	inBackOff = define("queueunits_in_backoff_queue", "Number of units of a queue that are in back-off.", "queue")
	ofQuota   = define("dequeued_quota_usage_by_quota", "Amount that admitted units hold in a quota and below it.",
		"quota", "resource")
	ofNamespace = define("dequeued_quota_usage_by_namespace", "Amount that admitted units of a namespace hold.",
		"namespace", "resource")
	ofType = define("queueunits_by_job_type", "Number of units of a kind of jobs.", "namespace", "type")
)

func define(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// deepest quota that is looked for: more levels are an error of who made them.
const deepest = 64

// Collector reads units of which the cache has all. The replica that leads serves them, and no other one.
type Collector struct {
	Reader  client.Reader
	Elected <-chan struct{}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{active, inBackOff, ofQuota, ofNamespace, ofType} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.Elected:
	default:
		return
	}
	units := &v1alpha1.QueueUnitList{}
	if err := c.Reader.List(context.Background(), units, client.UnsafeDisableDeepCopy); err != nil {
		to <- prometheus.NewInvalidMetric(active, err)
		return
	}
	quotas, err := elasticquota.List(context.Background(), c.Reader, client.UnsafeDisableDeepCopy)
	if err != nil {
		to <- prometheus.NewInvalidMetric(ofQuota, err)
		return
	}
	parents := make(map[string]string, len(quotas))
	for i := range quotas {
		parents[quotas[i].Name] = quotas[i].Labels[v1alpha1.LabelQuotaParent]
	}
	for at, value := range sum(units.Items, parents) {
		to <- prometheus.MustNewConstMetric(at.desc, prometheus.GaugeValue, value, at.values()...)
	}
}

// series is one metric with its labels; the second is empty where there is one.
type series struct {
	desc          *prometheus.Desc
	first, second string
}

func (s series) values() []string {
	if s.desc == active || s.desc == inBackOff {
		return []string{s.first}
	}
	return []string{s.first, s.second}
}

func sum(units []v1alpha1.QueueUnit, parents map[string]string) map[series]float64 {
	sums := map[series]float64{}
	for i := range units {
		u := &units[i]
		queue, quota := u.Spec.Queue, u.Labels[v1alpha1.LabelQuotaName]
		if e := u.Status.Effective; e != nil {
			queue, quota = e.Queue, e.Quota
		}
		if ref := u.Spec.ConsumerRef; ref != nil {
			sums[series{ofType, u.Namespace, ref.Kind}]++
		}
		switch phase := unit.Phase(u.Status.Phase); {
		case phase == unit.PhaseTimeoutBackoff:
			sums[series{inBackOff, queue, ""}]++
		case phase.Waits() && !u.Inactive():
			sums[series{active, queue, ""}]++
		case phase.Holds():
			addHeld(sums, u, quota, parents)
		}
	}
	return sums
}

func addHeld(sums map[series]float64, u *v1alpha1.QueueUnit, quota string, parents map[string]string) {
	for i := range u.Status.Admissions {
		for name, amount := range u.Status.Admissions[i].Resources {
			value := amount.AsApproximateFloat64()
			sums[series{ofNamespace, u.Namespace, string(name)}] += value
			for at, depth := quota, 0; at != "" && depth < deepest; at, depth = parents[at], depth+1 {
				sums[series{ofQuota, at, string(name)}] += value
			}
		}
	}
}
