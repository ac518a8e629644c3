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

package metrics

import (
	"iter"
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Set holds the metrics of the table that one process registers. The nil pointer counts nothing, and counts before the
// registration are lost. A Set is safe for concurrent use. Using a name against its type, or with a wrong number of
// labels, panics.
type Set struct {
	process    Process
	counters   map[Name]*metrics.CounterVec
	gauges     map[Name]*metrics.GaugeVec
	histograms map[Name]*metrics.HistogramVec
}

// New makes a Set that is not registered.
func New(process Process) *Set {
	s := &Set{
		process:    process,
		counters:   map[Name]*metrics.CounterVec{},
		gauges:     map[Name]*metrics.GaugeVec{},
		histograms: map[Name]*metrics.HistogramVec{},
	}
	for d := range s.definitions() {
		name := string(d.name)
		switch d.kind {
		case counter:
			s.counters[d.name] = metrics.NewCounterVec(&metrics.CounterOpts{
				Name: name, Help: d.help, StabilityLevel: metrics.ALPHA,
			}, d.labels)
		case gauge:
			s.gauges[d.name] = metrics.NewGaugeVec(&metrics.GaugeOpts{
				Name: name, Help: d.help, StabilityLevel: metrics.ALPHA,
			}, d.labels)
		case histogram:
			s.histograms[d.name] = metrics.NewHistogramVec(&metrics.HistogramOpts{
				Name: name, Help: d.help, Buckets: d.buckets, StabilityLevel: metrics.ALPHA,
			}, d.labels)
		}
	}
	return s
}

// Registered returns the Set that the scheduler serves with the metrics of Kubernetes' components.
var Registered = sync.OnceValue(func() *Set {
	s := New(Scheduler)
	s.MustRegister(legacyregistry.MustRegister)
	return s
})

// definitions of the metrics of the Set.
func (s *Set) definitions() iter.Seq[*definition] {
	return func(yield func(*definition) bool) {
		for i := range table {
			if r := &table[i]; r.process == s.process && r.library == "" && !yield(&r.definition) {
				return
			}
		}
	}
}

// MustRegister registers all metrics of the Set, in the order of the table; it panics if one of that name exists.
func (s *Set) MustRegister(register func(...metrics.Registerable)) {
	for d := range s.definitions() {
		switch d.kind {
		case counter:
			register(s.counters[d.name])
		case gauge:
			register(s.gauges[d.name])
		case histogram:
			register(s.histograms[d.name])
		}
	}
}

// Inc adds one to a counter.
func (s *Set) Inc(name Name, labels ...string) { s.CountIf(true, name, labels...) }

// CountIf adds one to a counter if something is so, and zero otherwise.
func (s *Set) CountIf(so bool, name Name, labels ...string) {
	n := 0
	if so {
		n = 1
	}
	s.Add(n, name, labels...)
}

// Add adds n, 0 or more, to a counter. Prometheus sees the first increase of a counter only if the counter was there
// before: so zero is added, too.
func (s *Set) Add(n int, name Name, labels ...string) {
	if s != nil {
		s.counters[name].WithLabelValues(labels...).Add(float64(n))
	}
}

// Set sets a gauge.
func (s *Set) Set(name Name, value float64, labels ...string) {
	if s != nil {
		s.gauges[name].WithLabelValues(labels...).Set(value)
	}
}

// Forget removes one set of labels from a gauge.
func (s *Set) Forget(name Name, labels ...string) {
	if s != nil {
		s.gauges[name].DeleteLabelValues(labels...)
	}
}

// ForgetCounted removes what counters and histograms have of one value of a label, such as the name of a queue that is
// gone.
func (s *Set) ForgetCounted(label, value string) {
	if s == nil {
		return
	}
	of := map[string]string{label: value}
	for _, v := range s.counters {
		if v.IsCreated() {
			v.DeletePartialMatch(of)
		}
	}
	for _, v := range s.histograms {
		if v.IsCreated() {
			v.DeletePartialMatch(of)
		}
	}
}

// Replace sets a gauge of one label to the numbers of now, and removes the labels that only the former numbers have.
func (s *Set) Replace(name Name, former, now map[string]int) {
	for label := range former {
		if _, still := now[label]; !still {
			s.Forget(name, label)
		}
	}
	for label, n := range now {
		s.Set(name, float64(n), label)
	}
}

// Observe adds a value to a histogram. A negative value is 0: a time between what two clocks say may be negative, and a
// sum that falls reads as a restart.
func (s *Set) Observe(name Name, value float64, labels ...string) {
	if s != nil {
		s.histograms[name].WithLabelValues(labels...).Observe(max(value, 0))
	}
}
