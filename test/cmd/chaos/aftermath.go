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

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/inspection"
)

// The rules of what must not be left behind.
const (
	leftBehind checker.Rule = "LeftBehind"
	restless   checker.Rule = "Restless"
	unclean    checker.Rule = "Unclean"
)

// aftermath asks the API server and the leading scheduler for what is left when all is over.
type aftermath struct {
	cp   *controlplane.ControlPlane
	kube kubernetes.Interface
	dyn  dynamic.Interface
}

var elasticQuotas = schema.GroupVersionResource{
	Group: "scheduling.sigs.k8s.io", Version: "v1alpha1", Resource: "elasticquotas",
}

// settled polls until nothing is left, and returns what still is after the patience.
func (a *aftermath) settled(ctx context.Context, patience time.Duration) (found []checker.Violation, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		found, err = a.left(ctx)
		if err == nil && len(found) == 0 {
			return nil, nil
		}
		if !sleep(ctx, time.Second) {
			// What was found last, if the last look was cut short.
			if len(found) > 0 {
				err = nil
			}
			return found, err
		}
	}
}

func (a *aftermath) left(ctx context.Context) ([]checker.Violation, error) {
	var found []checker.Violation
	report := func(subject, format string, args ...any) {
		found = append(found, checker.Violation{Rule: leftBehind, Subject: subject, Message: fmt.Sprintf(format, args...)})
	}
	jobs, err := a.kube.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	units, err := a.dyn.Resource(v1alpha1.QueueUnitResource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := a.kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	quotas, err := a.dyn.Resource(elasticQuotas).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if err := unitsLeft(units.Items, jobs.Items, report); err != nil {
		return nil, err
	}
	podsLeft(pods.Items, report)
	quotasLeft(quotas.Items, report)
	return found, a.metricsLeft(ctx, report)
}

func unitsLeft(units []unstructured.Unstructured, jobs []batchv1.Job, report func(string, string, ...any)) error {
	unitOf := map[string]bool{}
	live := map[string]bool{}
	for i := range jobs {
		live[string(jobs[i].UID)] = true
	}
	for i := range units {
		u := &v1alpha1.QueueUnit{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(units[i].Object, u); err != nil {
			return err
		}
		key := "unit " + u.Namespace + "/" + u.Name
		if u.Spec.ConsumerRef == nil || !live[string(u.Spec.ConsumerRef.UID)] {
			report(key, "has no job")
		} else {
			unitOf[string(u.Spec.ConsumerRef.UID)] = true
		}
		if u.Status.Phase != v1alpha1.PhaseSucceed || len(u.Status.Admissions) > 0 {
			report(key, "is %s and holds %v", u.Status.Phase, u.Status.Admissions)
		}
	}
	for i := range jobs {
		key := "job " + jobs[i].Namespace + "/" + jobs[i].Name
		if !unitOf[string(jobs[i].UID)] {
			report(key, "has no unit")
		}
		if view := checker.JobOf(&jobs[i]); !view.Complete {
			report(key, "is not complete")
		}
	}
	return nil
}

func podsLeft(pods []corev1.Pod, report func(string, string, ...any)) {
	for i := range pods {
		if p := checker.PodOf(&pods[i]); !p.Terminal {
			report("pod "+p.Name, "has not ended; on a node: %t", p.Bound)
		}
	}
}

// quotasLeft looks at what Koordinator says is used.
func quotasLeft(quotas []unstructured.Unstructured, report func(string, string, ...any)) {
	for i := range quotas {
		used, _, _ := unstructured.NestedStringMap(quotas[i].Object, "status", "used")
		for name, amount := range used {
			if q, err := resource.ParseQuantity(amount); err != nil || !q.IsZero() {
				report("quota "+quotas[i].GetName(), "%s used: %s", name, amount)
			}
		}
	}
}

// leader returns the scheduler that leads, "" if none does now. Only the leader serves the plugin's answers.
func leader(ctx context.Context, cp *controlplane.ControlPlane) controlplane.Component {
	for _, c := range []controlplane.Component{schedulerA, schedulerB} {
		if body, err := inspection.Get(ctx, cp.URL(c)+"/apis/v1/__services__"); err == nil && body != "" {
			return c
		}
	}
	return ""
}

func (a *aftermath) metricsLeft(ctx context.Context, report func(string, string, ...any)) error {
	return a.metrics(ctx, func(name string, labels string, value float64) {
		if slices.Contains(inspection.AtRest, name) && value != 0 {
			report("metric "+name, "%s is %g", labels, value)
		}
	})
}

// metrics visits each series of the leader.
func (a *aftermath) metrics(ctx context.Context, visit func(name, labels string, value float64)) error {
	leads := leader(ctx, a.cp)
	if leads == "" {
		return errors.New("no scheduler leads")
	}
	return inspection.Metrics(ctx, a.cp.URL(leads), visit)
}

// audit has the leader compare its state with the API objects and returns what it says.
func (a *aftermath) audit(ctx context.Context) ([]checker.Violation, error) {
	for ctx.Err() == nil {
		leads := leader(ctx, a.cp)
		clean, other, err := inspection.Audits(ctx, a.cp.URL(leads))
		if leads == "" || err != nil || a.cp.Signal(leads, syscall.SIGUSR1) != nil {
			sleep(ctx, time.Second)
			continue
		}
		// Another leader counts for itself, and has not been asked.
		for ctx.Err() == nil && leader(ctx, a.cp) == leads {
			nowClean, nowOther, err := inspection.Audits(ctx, a.cp.URL(leads))
			if err == nil && nowClean > clean {
				return nil, nil
			}
			if err == nil && nowOther > other {
				return []checker.Violation{
					{Rule: unclean, Subject: "ledger", Message: "the audit of the leader found differences or failed; see its log"},
				}, nil
			}
			sleep(ctx, 200*time.Millisecond)
		}
	}
	return nil, ctx.Err()
}

// quiet waits until nobody writes for the length, and returns what was written in the last of so many tries (I12): what
// goes on being written is not at rest; what comes late once on a slow machine was not there yet.
func quiet(ctx context.Context, h *history, length time.Duration, tries int) (found []checker.Violation) {
	for range tries {
		if found = written(ctx, h, length); len(found) == 0 {
			return nil
		}
	}
	return found
}

// written returns what is written in the time.
func written(ctx context.Context, h *history, length time.Duration) []checker.Violation {
	before := h.length()
	sleep(ctx, length)
	var found []checker.Violation
	for _, e := range h.since(before) {
		subject := ""
		switch o := e.Object.(type) {
		case checker.Unit:
			subject = "unit " + o.Key
		case checker.Pod:
			subject = "pod " + o.Name
		case checker.Job:
			subject = "job " + o.Name
		default: // the status of quotas is Koordinator's, and comes late
			continue
		}
		found = append(found, checker.Violation{
			Rule: restless, Subject: subject, Message: fmt.Sprintf("was written after all was over: %+v", e),
		})
	}
	return found
}
