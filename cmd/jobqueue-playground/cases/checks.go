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

package cases

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// checksScenario is what the scenario of checks and time-outs needs.
//
//go:embed checks.yaml
var checksScenario []byte

const (
	// checksController answers the checks of the scenario, as checksAccount, which may do that and nothing else.
	checksController             = "demo.koord-queue/checks"
	checksAccount                = "system:serviceaccount:checks:checker"
	checksNamespace, checksQuota = "checks", "checks"
	// smallQuota has room for smallRoom pods. The job that goes there asks for largePods and can do with largeLeast.
	smallQuota                       = "small"
	smallRoom, largePods, largeLeast = 4, 6, 2
	// needsLabel of a job is the check that it has to pass.
	needsLabel = "needs"
	// paidLabel is what the check of the budget has written into pods.
	paidLabel, paidBy = "paid-by", "q3"
	// lateLabel is on no node until all jobs that want it have lost their quota.
	lateLabel = "demo/late"

	slowAnswer     = 8 * time.Second
	retries        = 2
	retryAfter     = 3 * time.Second
	checksInterval = 150 * time.Millisecond
	checksRun      = 4 * time.Second
	checksPods     = 2
)

func checks() *Scenario {
	return &Scenario{
		Name: "checks", About: "admission checks and time-outs, a case of a few jobs each",
		Objects: checksScenario, Quotas: []string{checksQuota}, Interval: checksInterval, cases: checksCases(),
		Start: startChecks, Due: (*Stories).nodeIsMissed, Do: bringNode,
	}
}

// checksCases are all of the scenario, in the order of the table.
func checksCases() []Case {
	cases := []Case{
		{
			name: "no check", queue: "checked", jobs: 4,
			promise: "a job that no check is asked about does not wait for one",
			missing: func(s *story) string { return s.ranAfter() },
		},
		{
			name: "slow check", queue: "checked", jobs: 4, needs: "approval",
			promise: "no pod before the answer; the quota is held until then",
			missing: func(s *story) string {
				// Times in objects are of whole seconds.
				if s.reserved < slowAnswer-2*time.Second {
					return fmt.Sprintf("its quota was reserved for %s only", inSeconds(s.reserved))
				}
				return s.ranAfter()
			},
		},
		{
			name: "retried check", queue: "checked", jobs: 3, needs: "budget",
			promise: "the quota is free until it is tried again; what the check wrote is in the pods",
			missing: func(s *story) string {
				if s.unpaid > 0 {
					return fmt.Sprintf("%d pods lack what the check wrote", s.unpaid)
				}
				return s.ranAfter(slices.Repeat([]string{"CheckRetry"}, retries)...)
			},
		},
		{
			name: "rejected", queue: "checked", jobs: 2, needs: "licence", Refused: true,
			promise: "it never runs, its quota is free, and it says why",
			missing: func(s *story) string { return s.endedBy("CheckRejected") },
		},
		{
			name: "no answer in time", queue: "checked", jobs: 2, needs: "sign-off",
			promise: "the quota is free after 10s; tried again after a minute or so, it runs",
			missing: func(s *story) string { return s.ranAfter("CheckTimeout") },
		},
		{
			name: "no node fits", queue: "impatient", jobs: 2, late: true,
			promise: "the quota is free after 10s; tried again after a minute or so, when there is a node, it runs",
			missing: func(s *story) string { return s.ranAfter("Unschedulable") },
		},
		{
			name: "too large", queue: "small", jobs: 1, small: true,
			promise: fmt.Sprintf("for want of room for %d pods at once it runs with %d, until all are done",
				largePods, smallRoom),
			missing: func(s *story) string {
				if s.granted != smallRoom || s.peak > smallRoom {
					return fmt.Sprintf("it was admitted with %d pods, and had %d at once", s.granted, s.peak)
				}
				return s.ranAfter()
			},
		},
	}
	for i := range cases {
		c := &cases[i]
		if c.namespace, c.quota, c.pods, c.run = checksNamespace, checksQuota, checksPods, checksRun; c.small {
			c.quota, c.pods = smallQuota, largePods
		}
	}
	return cases
}

// answerOf a check about a unit, which follows from the two and the time.
func answerOf(now time.Time, unit *v1alpha1.QueueUnit, check string) admissioncheck.Answer {
	switch i := slices.IndexFunc(unit.Status.AdmissionChecks, func(s v1alpha1.AdmissionCheckState) bool {
		return s.Name == check
	}); {
	case i < 0:
	case check == "approval":
		left := unit.Status.AdmissionChecks[i].LastTransitionTime.Add(slowAnswer).Sub(now)
		if unit.Status.AdmissionChecks[i].State == admissioncheck.Pending && left > 0 {
			return admissioncheck.Answer{Message: "somebody has to look at it", RequeueAfter: left}
		}
		return admissioncheck.Answer{State: admissioncheck.Ready, Message: "approved"}
	case check == "budget" && unit.Status.Attempts <= retries:
		return admissioncheck.Answer{
			State: admissioncheck.Retry, Message: "the budget is spent for the moment", RequeueAfter: retryAfter,
		}
	case check == "budget":
		updates := make([]v1alpha1.PodSetUpdate, 0, len(unit.Spec.PodSets))
		for set := range unit.Spec.PodSets {
			updates = append(updates, v1alpha1.PodSetUpdate{
				Name: unit.Spec.PodSets[set].Name, Labels: map[string]string{paidLabel: paidBy},
			})
		}
		return admissioncheck.Answer{State: admissioncheck.Ready, Message: "there is money again", PodSetUpdates: updates}
	case check == "licence":
		return admissioncheck.Answer{State: admissioncheck.Rejected, Message: "no licence covers this job"}
	case check == "sign-off" && unit.Status.Attempts > 1:
		return admissioncheck.Answer{State: admissioncheck.Ready, Message: "signed"}
	}
	return admissioncheck.Answer{Message: "nobody is there to answer"}
}

// startChecks answers the checks until ctx ends; the error that comes then is nil if that went well.
func startChecks(ctx context.Context, cp *controlplane.ControlPlane) (<-chan error, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	ctrl.SetLogger(logr.Discard()) // as klog's
	config := cp.RESTConfig(controlplane.Admin)
	config.Impersonate.UserName = checksAccount
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, err
	}
	checks := &admissioncheck.Controller{
		ControllerName: checksController,
		Check: func(_ context.Context, u *v1alpha1.QueueUnit, c *v1beta1.AdmissionCheck) (admissioncheck.Answer, error) {
			return answerOf(time.Now(), u, c.Name), nil
		},
	}
	if err := checks.SetupWithManager(mgr); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return ended, nil
}

// bringNode has a node that the jobs of the last case wait for.
func bringNode(ctx context.Context, cp *controlplane.ControlPlane) error {
	client, err := kubernetes.NewForConfig(cp.RESTConfig(controlplane.Admin))
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"true"}}}`, lateLabel)
	_, err = client.CoreV1().Nodes().Patch(ctx, controlplane.NodeName(0), types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	return err
}
