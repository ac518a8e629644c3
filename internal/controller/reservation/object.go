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

package reservation

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/koordinator-sh/koordinator/apis/extension"
	koordinatorv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
)

// Labels and annotation of a Reservation, as the stand-alone Koord-Queue writes them.
const (
	labelJobNamespace = "reserved-job-namespace"
	labelJobName      = "reserved-job-name"
	annotationUnit    = "reserved-queueunit-name"
)

// mostPods and mostBytes bound the pods and the template, in bytes of JSON, of a job with Reservations. Each
// Reservation is an object in the API server and a pod in the scheduler.
const mostPods, mostBytes = 500, 16 << 10

// timeToLive is when Koordinator lets a Reservation expire that nobody has deleted.
const timeToLive = time.Hour

// mostPriority is the greatest priority that a PriorityClass of a user may have.
const mostPriority = 1_000_000_000

// keptAnnotations of a pod template choose devices, cpus and NUMA nodes.
var keptAnnotations = []string{
	extension.AnnotationResourceSpec, extension.AnnotationNUMATopologySpec, extension.AnnotationDeviceAllocateHint,
	extension.AnnotationDeviceJointAllocate, extension.AnnotationGPUPartitionSpec,
}

// keptLabels of Koordinator's domain choose cpus.
var keptLabels = []string{extension.LabelPodQoS, extension.LabelPodPriorityClass}

// wanted are the Reservations of a unit that holds quota: one for each pod that is still to come. The error says why
// there can be none.
func wanted(unit *v1alpha1.QueueUnit, kinds []jobkind.Kind) (list []*koordinatorv1alpha1.Reservation, err error) {
	owner, err := ownerOf(unit, kinds)
	if err != nil {
		return nil, err
	}
	if len(unit.Spec.PodSets) == 0 {
		return nil, errNoSets
	}
	updates := podupdate.Ready(podupdate.Of(unit))
	total := corev1.ResourceList{}
	for i := range unit.Spec.PodSets {
		set := &unit.Spec.PodSets[i]
		count := int(admissioncheck.Pods(unit, set))
		if count <= 0 {
			continue
		}
		if count > mostPods-len(list) {
			return nil, fmt.Errorf("the job has more than %d pods, and Reservations are created for at most %d",
				mostPods, mostPods)
		}
		template, err := templateOf(unit, set, updates[set.Name])
		if err == nil {
			total, err = plus(total, template, count)
		}
		if err != nil {
			return nil, fmt.Errorf("template of pod set %q: %w", set.Name, err)
		}
		spec := koordinatorv1alpha1.ReservationSpec{
			Template: template, Owners: []koordinatorv1alpha1.ReservationOwner{owner},
			TTL: &metav1.Duration{Duration: timeToLive}, AllocateOnce: ptr.To(true),
			AllocatePolicy: koordinatorv1alpha1.ReservationAllocatePolicyAligned,
		}
		prefix, err := prefixOf(unit, i, &spec)
		if err != nil {
			return nil, fmt.Errorf("template of pod set %q: %w", set.Name, err)
		}
		for pod := range count {
			list = append(list, newReservation(unit, fmt.Sprintf("%s%d", prefix, pod), &spec))
		}
	}
	if err := covered(unit, total); err != nil {
		return nil, err
	}
	return list, nil
}

// plus adds so many pods of a template. A negative amount is an error: the API server looks at no template in a
// Reservation.
func plus(total corev1.ResourceList, template *corev1.PodTemplateSpec, pods int) (corev1.ResourceList, error) {
	one, err := podrequest.Of(template)
	if err != nil {
		return nil, err
	}
	all, err := podrequest.Times(one, int64(pods))
	if err != nil {
		return nil, err
	}
	return podrequest.Sum(total, all)
}

// covered is an error if the Reservations would take more than the unit holds. ElasticQuota does not count them, and a
// unit may ask for less than its templates do.
func covered(unit *v1alpha1.QueueUnit, total corev1.ResourceList) error {
	held := corev1.ResourceList{}
	for i := range unit.Status.Admissions {
		var err error
		if held, err = podrequest.Sum(held, unit.Status.Admissions[i].Resources); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(total)) {
		if want, have := total[name], held[name]; want.Cmp(have) > 0 {
			return fmt.Errorf("the Reservations would take %s %s, and the unit holds %s", name, want.String(), have.String())
		}
	}
	return nil
}

func newReservation(
	unit *v1alpha1.QueueUnit, name string, spec *koordinatorv1alpha1.ReservationSpec,
) *koordinatorv1alpha1.Reservation {
	labels := map[string]string{
		v1alpha1.LabelCreatedBy: v1alpha1.CreatedByController, labelJobNamespace: unit.Namespace,
	}
	if job := unit.Spec.ConsumerRef.Name; len(validation.IsValidLabelValue(job)) == 0 {
		labels[labelJobName] = job
	}
	return &koordinatorv1alpha1.Reservation{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: map[string]string{annotationUnit: unit.Name},
		},
		Spec: *spec.DeepCopy(),
	}
}

// prefixOf is the beginning of the names for one pod set. It follows from the unit, the attempt and the content: asked
// again, the same Reservations are meant, and another template has others.
func prefixOf(unit *v1alpha1.QueueUnit, set int, spec *koordinatorv1alpha1.ReservationSpec) (string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	if len(text) > mostBytes {
		return "", fmt.Errorf("it has %d bytes, and a Reservation at most %d", len(text), mostBytes)
	}
	h := fnv.New64a()
	_, _ = h.Write(text)
	return fmt.Sprintf("%s%d-%d-%016x-", namePrefix(unit.UID), unit.Status.Attempts, set, h.Sum64()), nil
}

// namePrefix is the beginning of the names of all Reservations of a unit.
func namePrefix(unit types.UID) string { return "jobqueue-" + string(unit) + "-" }

// unitOf is the unit that a Reservation of this controller was made for; false for others.
func unitOf(r metav1.Object) (unit types.NamespacedName, ours bool) {
	labels := r.GetLabels()
	unit = types.NamespacedName{Namespace: labels[labelJobNamespace], Name: r.GetAnnotations()[annotationUnit]}
	ours = labels[v1alpha1.LabelCreatedBy] == v1alpha1.CreatedByController
	return unit, ours && unit.Namespace != "" && unit.Name != ""
}

// templateOf is the pod that looks for a node. It has only the fields that decide where pods of the set can run and how
// much they use. A tenant writes the template, and a Reservation would obey it. So the pod is in no gang, preempts
// nobody, and has the priority of the unit: without one Koordinator gives the greatest priority.
func templateOf(
	unit *v1alpha1.QueueUnit, set *v1alpha1.PodSet, update podupdate.Update,
) (*corev1.PodTemplateSpec, error) {
	pods, err := podtemplate.Scheduled(set.Template.Raw)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{extension.LabelQuotaName: extension.DefaultQuotaName}
	for key, value := range pods.Labels {
		if slices.Contains(keptLabels, key) || !ofSchedulers(key) {
			labels[key] = value
		}
	}
	annotations := map[string]string{}
	for _, key := range keptAnnotations {
		if value, ok := pods.Annotations[key]; ok {
			annotations[key] = value
		}
	}
	spec := &pods.Spec
	spec.Priority = ptr.To(min(ptr.Deref(unit.Spec.Priority, 0), mostPriority))
	spec.PriorityClassName, spec.PreemptionPolicy = "", ptr.To(corev1.PreemptNever)
	spec.SchedulingGates, spec.Volumes, spec.ResourceClaims = nil, nil, nil
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			containers[i].Resources.Claims = nil
		}
	}
	if len(update.NodeSelector) > 0 {
		selector := maps.Clone(update.NodeSelector)
		maps.Copy(selector, spec.NodeSelector)
		spec.NodeSelector = selector
	}
	spec.Tolerations = append(spec.Tolerations, update.Tolerations...)
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Namespace: unit.Namespace, Labels: labels, Annotations: annotations}, Spec: *spec,
	}, nil
}

// ofSchedulers says whether a label means something to Koordinator, to gangs or to a queue.
func ofSchedulers(label string) bool {
	domain, _, _ := strings.Cut(label, "/")
	for _, of := range []string{"koordinator.sh", "scheduling.sigs.k8s.io", "alibabacloud.com", "koord-queue"} {
		if domain == of || strings.HasSuffix(domain, "."+of) {
			return true
		}
	}
	return false
}

var (
	errNoJob  = errors.New("the unit names no job of a managed kind, so no pods could use Reservations")
	errNoSets = errors.New("the unit has no pod sets, so it is not known what its pods need")
)

// ownerOf says which pods may use the Reservations: those of the job, in the namespace of the unit. Labels are the
// tenant's, so they count together with the namespace, and only where the job does not own its pods.
func ownerOf(unit *v1alpha1.QueueUnit, kinds []jobkind.Kind) (owner koordinatorv1alpha1.ReservationOwner, err error) {
	job := unit.Spec.ConsumerRef
	if job == nil || job.UID == "" || job.Namespace != "" && job.Namespace != unit.Namespace {
		return owner, errNoJob
	}
	of := slices.IndexFunc(kinds, func(k jobkind.Kind) bool { return k.GVK == job.GroupVersionKind() && !k.OfPods() })
	if of < 0 {
		return owner, errNoJob
	}
	if len(kinds[of].Children) == 0 {
		owner.Controller = &koordinatorv1alpha1.ReservationControllerReference{
			Namespace: unit.Namespace, OwnerReference: metav1.OwnerReference{
				APIVersion: job.APIVersion, Kind: job.Kind, Name: job.Name, UID: job.UID, Controller: ptr.To(true),
			},
		}
		return owner, nil
	}
	pods := &kinds[of].Pods
	value := string(job.UID)
	if pods.ByName {
		value = job.Name
	}
	if pods.Label == "" || pods.Value != nil || len(validation.IsValidLabelValue(value)) > 0 {
		return owner, fmt.Errorf("no label tells the pods of a %s, so they could not use Reservations", job.Kind)
	}
	owner.Object = &corev1.ObjectReference{Namespace: unit.Namespace}
	owner.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{pods.Label: value}}
	return owner, nil
}
