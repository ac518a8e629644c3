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

package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// With its gate off a feature passes nothing over: what it would decide waits and is told, and goes once the gate is
// on.
func TestFeaturesThatAreOff(t *testing.T) {
	c := start(t, "features", controlplane.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	off := map[string]any{"AdmissionChecks": false, "PartialAdmission": false}
	require.NoError(t, c.StartScheduler(ctx, controlplane.SchedulerOptions{Mutate: func(config map[string]any) {
		controlplane.JobQueueArgs(config)["featureGates"] = off
	}}))
	require.NoError(t, c.StartController(ctx, controlplane.ControllerOptions{Config: map[string]any{"featureGates": off}}))
	for name := range off {
		require.Zero(t, c.metric(t, "kubernetes_feature_enabled{", `name="`+name+`"`), name)
	}

	ns := c.namespace(t, "features")
	k := c.checker(t, "e2e-features")
	c.quota(t, ns, "checked", 4, 4)
	c.patchQueue(t, "checked", `{"spec":{"admissionChecks":[{"name":"e2e-features"}]}}`)
	c.quota(t, ns, "small", 3, 3)
	c.create(t, newJob(ns, "checked", suspended, ofQuota("checked"), cpu("1"), runs(time.Second)))
	c.create(t, newJob(ns, "part", suspended, ofQuota("small"), cpu("1"), pods(5), runs(time.Hour), atLeast("2")))
	k.say("e2e-features", "checked", admissioncheck.Answer{State: admissioncheck.Ready})
	require.Contains(t, c.waitReason(t, ns, "checked", "CheckInactive"), "AdmissionChecks")
	c.waitReason(t, ns, "part", "ExceedsMax")
	require.Nil(t, c.unit(t, ns, "part").Spec.PodSets[0].MinCount)
	require.Empty(t, c.podsOf(t, ns, "checked"))
	require.Empty(t, c.podsOf(t, ns, "part"))

	require.NoError(t, c.StopComponent(controlplane.Scheduler))
	require.NoError(t, c.StopComponent(controlplane.Controller))
	c.complete(t)
	for name := range off {
		require.Equal(t, 1.0, c.metric(t, "kubernetes_feature_enabled{", `name="`+name+`"`), name)
	}
	c.waitPhase(t, ns, "checked", schedulingv1alpha1.PhaseSucceed)
	c.waitPhase(t, ns, "part", schedulingv1alpha1.PhaseRunning)
	require.EqualValues(t, 3, c.unit(t, ns, "part").Status.Admissions[0].Replicas)
	c.agrees(t)
}
