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

package stall

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var admitted = time.Date(2026, 1, 1, 0, 0, 30, 5, time.UTC)

func pod(edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "j-0", CreationTimestamp: metav1.NewTime(admitted)},
		Spec: corev1.PodSpec{SchedulerName: "koord-scheduler"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func gate(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
}

func refused(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: "Unschedulable", Message: message}}
	}
}

func bound(p *corev1.Pod) { p.Spec.NodeName = "node-1" }

func waits(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = "node-1"
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func ended(code int32) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error"}
}

func crashes(p *corev1.Pod) {
	waits("CrashLoopBackOff", "back-off 10s")(p)
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses[0].RestartCount = 3
	p.Status.ContainerStatuses[0].LastTerminationState.Terminated = ended(7)
}

func failed(p *corev1.Pod) {
	bound(p)
	p.Status.Phase = corev1.PodFailed
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c",
		State: corev1.ContainerState{Terminated: ended(2)}}}
}

func runs(p *corev1.Pod) {
	bound(p)
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func earlier(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(admitted.Add(-time.Minute)) }

func deleted(p *corev1.Pod) { now := metav1.NewTime(admitted); p.DeletionTimestamp = &now }

func TestFinding(t *testing.T) {
	const full = `exceeded quota: "small"`
	for name, c := range map[string]struct {
		pods    []*corev1.Pod
		refusal string
		partial bool
		reason  string
		message string
	}{
		"no pod, refused": {refusal: full, reason: "PodsNotCreated",
			message: `pods of the job cannot be created; the job's own controller says: "exceeded quota: 'small'"`},
		"no pod, nobody says why": {reason: "PodsNotCreated",
			message: "the job has no pod, and no event of the job says why"},
		"pods of an earlier run are no pods": {pods: []*corev1.Pod{pod(failed, earlier), pod(deleted, gate)},
			reason: "PodsNotCreated", message: "the job has no pod, and no event of the job says why"},
		"a part was looked at": {partial: true},
		"some run, others are refused": {pods: []*corev1.Pod{pod(runs)}, refusal: full, reason: "PodsNotCreated",
			message: `pods of the job cannot be created; the job's own controller says: "exceeded quota: 'small'"`},
		"gated": {pods: []*corev1.Pod{pod(refused("no node")), pod(gate), pod(gate)}, reason: "PodsGated",
			message: `pods of the job have scheduling gates that the job's owner sets (2): pod j-0 has gate "example.com/wait"`},
		"pending": {pods: []*corev1.Pod{pod(runs), pod(refused("0/2 nodes are available: 2 Insufficient cpu."))},
			reason: "PodsPending", message: `pods of the job wait for a node (1): the scheduler says of pod j-0: ` +
				`"0/2 nodes are available: 2 Insufficient cpu."`},
		"pending and refused": {pods: []*corev1.Pod{pod(refused("full"))}, refusal: full, partial: true,
			reason: "PodsPending", message: `pods of the job wait for a node (at least 1): the scheduler says of pod j-0: ` +
				`"full"; a further pod could not be created: "exceeded quota: 'small'"`},
		"no scheduler": {pods: []*corev1.Pod{pod()}, reason: "PodsPending", message: `pods of the job wait for a node (1): ` +
			`pod j-0 names scheduler "koord-scheduler", which says nothing of it`},
		"pulling": {pods: []*corev1.Pod{pod(waits("ImagePullBackOff", "Back-off pulling image"))},
			reason: "ContainersWaiting", message: `pods of the job are on a node and are not ready (1): ` +
				`container c of pod j-0 ` +
				`waits: "ImagePullBackOff: Back-off pulling image"`},
		"creating": {pods: []*corev1.Pod{pod(waits("ContainerCreating", ""))}, reason: "ContainersWaiting",
			message: `pods of the job are on a node and are not ready (1): container c of pod j-0 waits: "ContainerCreating"`},
		"bound, and the kubelet says nothing": {pods: []*corev1.Pod{pod(bound)}, reason: "ContainersWaiting",
			message: "pods of the job are on a node and are not ready (1): pod j-0 is on node node-1"},
		"crashing": {pods: []*corev1.Pod{pod(waits("ContainerCreating", "")), pod(crashes)},
			reason: "ContainersCrashing", message: `pods of the job fail (1): container c of pod j-0 has restarted 3 times ` +
				`with exit code 7: "Error"`},
		"failed": {pods: []*corev1.Pod{pod(failed)}, reason: "ContainersCrashing",
			message: `pods of the job fail (1): pod j-0 failed: container c ended with exit code 2: "Error"`},
		"all run": {pods: []*corev1.Pod{pod(runs), pod(runs)}},
	} {
		t.Run(name, func(t *testing.T) {
			tally := Tally{Admitted: admitted, Refusal: c.refusal, Partial: c.partial}
			for _, p := range c.pods {
				tally.Add(p)
			}
			require.Equal(t, Finding{c.reason, c.message}, tally.Finding())
		})
	}
}

// Tenants and webhooks write these texts.
func TestForeignTextIsBoundedAndPrintable(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("ä", 5000), "\x1b[2J\x00\xff\"; quota: free", strings.Repeat("\u202e", 3000), "",
	} {
		for _, edit := range []func(*corev1.Pod){
			refused(text), waits(text, text), crashes,
			func(p *corev1.Pod) { gate(p); p.Spec.SchedulingGates[0].Name = text },
			func(p *corev1.Pod) { p.Spec.SchedulerName = text },
			func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed; p.Status.Message = text },
		} {
			tally := Tally{Admitted: admitted, Refusal: text}
			tally.Add(pod(edit))
			message := tally.Finding().Message
			require.NotEmpty(t, message)
			require.LessOrEqual(t, len(message), 1200)
			require.NotContains(t, message, `quota: free"; quota`)
			require.False(t, strings.ContainsFunc(message, func(r rune) bool { return !unicode.IsPrint(r) }),
				fmt.Sprintf("%q", message))
		}
	}
}
