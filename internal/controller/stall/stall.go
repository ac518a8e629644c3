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

// Package stall finds out why an admitted job does not run, from its pods and from events of its own controller. No
// other package decides this. It has neither a client nor a clock.
package stall

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
)

// Finding is why a job does not run: the reason of a condition, and a sentence. It is empty if nothing is found.
type Finding struct{ Reason, Message string }

// mostQuoted bounds each text that somebody else wrote.
const mostQuoted = 400

// Tally of the pods of one job. It keeps one example of each finding, so its size does not grow with the pods.
type Tally struct {
	// Admitted is when the job was admitted. Pods of an earlier run that have failed do not count.
	Admitted time.Time
	// Refusal is what the job's own controller said last of a pod that it could not create; empty for nothing.
	Refusal string
	// Partial says that not all pods were looked at.
	Partial bool

	pods  int
	found [len(ranks)]class
}

// class of pods that do not run for the same reason.
type class struct {
	pods    int
	example string
}

// rank of a finding. If pods differ, the job is told the first of these, which is the furthest from running.
type rank int

const (
	gated rank = iota
	unbound
	crashing
	waiting
)

// ranks have a reason each, and words of a sentence about the pods.
var ranks = [...]struct{ reason, words string }{
	gated:    {unitcondition.ReasonPodsGated, "have scheduling gates that the job's owner sets"},
	unbound:  {unitcondition.ReasonPodsPending, "wait for a node"},
	crashing: {unitcondition.ReasonContainersCrashing, "fail"},
	waiting:  {unitcondition.ReasonContainersWaiting, "are on a node and are not ready"},
}

// Add a pod of the job.
func (t *Tally) Add(pod *corev1.Pod) {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded ||
		pod.Status.Phase == corev1.PodFailed && pod.CreationTimestamp.Time.Before(t.Admitted.Truncate(time.Second)) {
		return
	}
	t.pods++
	r, example := look(pod)
	if example == "" {
		return
	}
	if c := &t.found[r]; c.pods == 0 {
		c.pods, c.example = 1, example
	} else {
		c.pods++
	}
}

// Pods is how many pods were counted.
func (t *Tally) Pods() int { return t.pods }

// Finding is why the job does not run.
func (t *Tally) Finding() Finding {
	for r := range t.found {
		c := &t.found[r]
		if c.pods == 0 {
			continue
		}
		least := ""
		if t.Partial {
			least = "at least "
		}
		text := fmt.Sprintf("pods of the job %s (%s%d): %s", ranks[r].words, least, c.pods, c.example)
		if t.Refusal != "" {
			text += "; a further pod could not be created: " + quote(t.Refusal)
		}
		return Finding{ranks[r].reason, text}
	}
	switch {
	case t.Refusal != "":
		return Finding{unitcondition.ReasonPodsNotCreated,
			"pods of the job cannot be created; the job's own controller says: " + quote(t.Refusal)}
	case t.pods == 0 && !t.Partial:
		return Finding{unitcondition.ReasonPodsNotCreated, "the job has no pod, and no event of the job says why"}
	}
	return Finding{}
}

// NotResumed is the finding of a job whose resumption was refused with err.
func NotResumed(err error) Finding {
	return Finding{unitcondition.ReasonJobNotResumed, "the job cannot be resumed: " + quote(err.Error())}
}

// look says what keeps a pod from running; the text is empty if nothing does.
func look(pod *corev1.Pod) (rank, string) {
	switch {
	case pod.Status.Phase == corev1.PodFailed:
		return crashing, fmt.Sprintf("pod %s failed%s", pod.Name, failure(pod))
	case len(pod.Spec.SchedulingGates) > 0:
		return gated, fmt.Sprintf("pod %s has gate %s", pod.Name, quote(pod.Spec.SchedulingGates[0].Name))
	case pod.Spec.NodeName == "":
		return unbound, unboundPod(pod)
	default:
		return onNode(pod)
	}
}

func unboundPod(pod *corev1.Pod) string {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("the scheduler says of pod %s: %s", pod.Name, quote(cmp.Or(c.Message, c.Reason)))
		}
	}
	return fmt.Sprintf("pod %s names scheduler %s, which says nothing of it", pod.Name, quote(pod.Spec.SchedulerName))
}

// onNode reads the containers of a pod. A container that fails wins over one that waits.
func onNode(pod *corev1.Pod) (rank, string) {
	text := ""
	for _, list := range [][]corev1.ContainerStatus{
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses,
	} {
		for i := range list {
			c := &list[i]
			w := c.State.Waiting
			switch {
			case w != nil && w.Reason == "CrashLoopBackOff",
				c.RestartCount > 0 && !c.Ready && c.LastTerminationState.Terminated != nil:
				return crashing, fmt.Sprintf("container %s of pod %s has restarted %d times%s",
					c.Name, pod.Name, c.RestartCount, exit(c.LastTerminationState.Terminated))
			case w != nil && text == "":
				text = fmt.Sprintf("container %s of pod %s waits: %s", c.Name, pod.Name,
					quote(strings.TrimSuffix(w.Reason+": "+w.Message, ": ")))
			}
		}
	}
	if text == "" && !ready(pod) {
		text = fmt.Sprintf("pod %s is on node %s", pod.Name, pod.Spec.NodeName)
	}
	return waiting, text
}

func ready(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// failure of a pod that has ended.
func failure(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if end := c.State.Terminated; end != nil && end.ExitCode != 0 {
			return fmt.Sprintf(": container %s ended%s", c.Name, exit(end))
		}
	}
	if why := cmp.Or(pod.Status.Message, pod.Status.Reason); why != "" {
		return ": " + quote(why)
	}
	return ""
}

func exit(end *corev1.ContainerStateTerminated) string {
	if end == nil {
		return ""
	}
	text := fmt.Sprintf(" with exit code %d", end.ExitCode)
	if why := cmp.Or(end.Message, end.Reason); why != "" {
		text += ": " + quote(why)
	}
	return text
}

// quote text that somebody else wrote: bounded, of printable characters, and without a quotation mark that would end
// it.
func quote(text string) string {
	cut := ""
	if len(text) > mostQuoted {
		text, cut = text[:mostQuoted], "..."
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r == unicode.ReplacementChar:
			return -1
		case !unicode.IsPrint(r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return `"` + strings.TrimSpace(text) + cut + `"`
}
