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

package provisioning

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
)

const (
	theCheck = "nodes"
	workers  = `{"metadata":{"labels":{"app":"x"},"annotations":{"note":"private"}},"spec":{
		"nodeSelector":{"gpu":"yes"},"tolerations":[{"key":"gpu","operator":"Exists"}],
		"containers":[{"name":"c","image":"x","command":["run"],"env":[{"name":"TOKEN","value":"secret"}],
		"resources":{"limits":{"nvidia.com/gpu":"1"},"requests":{"cpu":"2"}}}]}}`
	driver = `{"spec":{"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":"1"}}}]}}`
)

// reserved is a unit for which quota is reserved, and whose check has not answered.
func reserved() *v1alpha1.QueueUnit {
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "u-1"},
		Spec: v1alpha1.QueueUnitSpec{PodSets: []v1alpha1.PodSet{
			{Name: "driver", Count: 1, Template: runtime.RawExtension{Raw: []byte(driver)}},
			{Name: "workers", Count: 4, Template: runtime.RawExtension{Raw: []byte(workers)}},
		}},
		Status: v1alpha1.QueueUnitStatus{
			Phase: v1alpha1.PhaseReserved, Attempts: 3,
			AdmissionChecks: []v1alpha1.AdmissionCheckState{{Name: theCheck, State: admissioncheck.Pending}},
		},
	}
}

func theConfig() *v1beta1.ProvisioningRequestConfigSpec {
	return &v1beta1.ProvisioningRequestConfigSpec{
		ProvisioningClassName: "check-capacity.autoscaling.x-k8s.io",
		Parameters:            map[string]v1beta1.Parameter{"zone": "a"},
	}
}

// asked has the request of the reservation made, and its templates.
func asked(t *testing.T, unit *v1alpha1.QueueUnit, config *v1beta1.ProvisioningRequestConfigSpec) *observed {
	t.Helper()
	o := &observed{unit: unit, check: theCheck, config: config, templates: map[string]*corev1.PodTemplate{}}
	p := planFor(o)
	require.NotNil(t, p.createRequest)
	request := p.createRequest
	request.UID = "r-1"
	o.requests = []autoscalingv1.ProvisioningRequest{*request}
	for _, template := range planFor(o).createTemplates {
		o.templates[template.Name] = template
	}
	return o
}

// says sets conditions, as type, type=False, or type: message.
func (o *observed) says(conditions ...string) {
	r := &o.requests[0]
	r.Status.Conditions = nil
	for _, text := range conditions {
		c := metav1.Condition{Status: metav1.ConditionTrue}
		c.Type, c.Message, _ = strings.Cut(text, ": ")
		if kind, no := strings.CutSuffix(c.Type, "=False"); no {
			c.Type, c.Status = kind, metav1.ConditionFalse
		}
		r.Status.Conditions = append(r.Status.Conditions, c)
	}
}

func TestARequestIsMadeOfTheUnit(t *testing.T) {
	unit := reserved()
	p := planFor(&observed{unit: unit, check: theCheck, config: theConfig()})
	require.Equal(t, admissioncheck.Pending, p.answer.State)
	r := p.createRequest
	require.Equal(t, requestName(unit, theCheck), r.Name)
	require.Equal(t, "ml", r.Namespace)
	require.True(t, metav1.IsControlledBy(r, unit), "it goes with its unit")
	require.Equal(t, "check-capacity.autoscaling.x-k8s.io", r.Spec.ProvisioningClassName)
	require.Equal(t, map[string]autoscalingv1.Parameter{"zone": "a"}, r.Spec.Parameters)
	require.Equal(t, []autoscalingv1.PodSet{
		{PodTemplateRef: autoscalingv1.Reference{Name: r.Name + "-0"}, Count: 1},
		{PodTemplateRef: autoscalingv1.Reference{Name: r.Name + "-1"}, Count: 4},
	}, r.Spec.PodSets)
	require.Empty(t, p.createTemplates, "they belong to the request, which has no UID yet")

	o := asked(t, unit, theConfig())
	template := o.templates[r.Name+"-1"]
	require.True(t, metav1.IsControlledBy(template, &o.requests[0]))
	require.Equal(t, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"gpu": "yes"},
			Tolerations:  []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "c", Image: noImage, Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")},
				Requests: corev1.ResourceList{
					"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("1"),
				},
			}}},
		},
	}, template.Template, "no secret of the job is copied")
	require.Empty(t, planFor(o).createTemplates)
}

func TestNamesOfRequests(t *testing.T) {
	unit := reserved()
	name := requestName(unit, theCheck)
	require.Equal(t, name, requestName(unit, theCheck))
	require.NotEqual(t, name, requestName(unit, "other"))
	next, other := reserved(), reserved()
	next.Status.Attempts++
	other.UID = "u-2"
	require.NotEqual(t, name, requestName(next, theCheck), "each reservation has its own")
	require.NotEqual(t, name, requestName(other, theCheck), "a unit of the same name is another one")
	for _, long := range []string{"a", "a.b-c", strings.Repeat("a", 253), strings.Repeat("a.b-c", 50)} {
		unit.Name, unit.Status.Attempts = long, 1<<62
		name := templateName(requestName(unit, theCheck), 19)
		require.Empty(t, validation.IsDNS1123Subdomain(name))
		require.LessOrEqual(t, len(name), 70)
	}
}

// Each answer of the autoscaler about the request of a reserved unit.
func TestAnswersAboutAReservedUnit(t *testing.T) {
	for _, c := range []struct {
		says    []string
		retries int32
		want    v1alpha1.CheckState
		message string
		after   time.Duration
	}{
		{want: admissioncheck.Pending, message: "capacity is asked for"},
		{says: []string{"Accepted: it is looked for"}, want: admissioncheck.Pending, message: "it is looked for"},
		{says: []string{"Accepted: yes", "Provisioned=False: in 5 minutes"}, want: admissioncheck.Pending,
			message: "in 5 minutes"},
		{says: []string{"Accepted", "Provisioned: there"}, want: admissioncheck.Ready, message: "there"},
		{says: []string{"Failed=False", "BookingExpired=False", "CapacityRevoked=False", "Provisioned"},
			want: admissioncheck.Ready},
		{says: []string{"Failed: no"}, want: admissioncheck.Retry, message: "Failed: no", after: time.Minute},
		{says: []string{"Failed"}, retries: 2, want: admissioncheck.Retry, message: "Failed", after: 4 * time.Minute},
		{says: []string{"Failed: no"}, retries: 3, want: admissioncheck.Rejected,
			message: "Failed: no; capacity was asked for 4 times"},
		{says: []string{"Failed: no"}, retries: -5, want: admissioncheck.Retry, after: time.Minute},
		{says: []string{"Provisioned: there", "Failed: no"}, want: admissioncheck.Retry, message: "Failed: no",
			after: time.Minute},
		{says: []string{"Provisioned", "BookingExpired: late"}, want: admissioncheck.Retry,
			message: "BookingExpired: late", after: time.Minute},
		{says: []string{"BookingExpired: late"}, retries: 3, want: admissioncheck.Rejected, message: "BookingExpired: late"},
		{says: []string{"Provisioned", "CapacityRevoked: gone"}, want: admissioncheck.Retry,
			message: "CapacityRevoked: gone", after: time.Minute},
		{says: []string{"Provisioned", "BookingExpired", "CapacityRevoked: gone"}, want: admissioncheck.Retry,
			message: "CapacityRevoked: gone", after: time.Minute},
		{says: []string{"Unheard"}, want: admissioncheck.Pending},
	} {
		t.Run(fmt.Sprint(c.says, c.retries), func(t *testing.T) {
			unit := reserved()
			unit.Status.AdmissionChecks[0].RetryCount = ptr.To(c.retries)
			o := asked(t, unit, theConfig())
			o.says(c.says...)
			p := planFor(o)
			require.Nil(t, p.createRequest)
			require.Empty(t, p.deleteRequests)
			require.Equal(t, c.want, p.answer.State)
			require.Contains(t, p.answer.Message, c.message)
			require.Equal(t, c.after, p.answer.RequeueAfter)
			require.Equal(t, c.want == admissioncheck.Ready, len(p.answer.PodSetUpdates) > 0)
			require.Equal(t, p, planFor(o), "asked twice it says the same")
		})
	}
}

// Each answer that comes after the job was let go.
func TestAnswersAboutAReleasedUnit(t *testing.T) {
	dequeued := func(*v1alpha1.QueueUnit) {}
	running := func(u *v1alpha1.QueueUnit) { u.Status.Phase = v1alpha1.PhaseRunning }
	starting := func(u *v1alpha1.QueueUnit) { u.Status.Admissions = []v1alpha1.Admission{{Name: "driver", Running: 1}} }
	ready := func(u *v1alpha1.QueueUnit) {
		u.Status.Phase = v1alpha1.PhaseRunning
		u.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodsReady, Status: metav1.ConditionTrue}}
	}
	for i, c := range []struct {
		unit    func(*v1alpha1.QueueUnit)
		says    []string
		retries int32
		want    v1alpha1.CheckState
	}{
		{unit: dequeued, says: []string{"Provisioned"}},
		{unit: dequeued},
		{unit: dequeued, says: []string{"Provisioned", "Failed"}},
		{unit: dequeued, says: []string{"Provisioned", "BookingExpired"}, want: admissioncheck.Retry},
		{unit: dequeued, says: []string{"Provisioned", "BookingExpired"}, retries: 3, want: admissioncheck.Rejected},
		{unit: starting, says: []string{"Provisioned", "BookingExpired"}},
		{unit: running, says: []string{"Provisioned", "BookingExpired"}},
		{unit: ready, says: []string{"Provisioned", "BookingExpired"}},
		{unit: dequeued, says: []string{"Provisioned", "CapacityRevoked"}, want: admissioncheck.Retry},
		{unit: running, says: []string{"Provisioned", "BookingExpired", "CapacityRevoked"}, want: admissioncheck.Retry},
		{unit: running, says: []string{"CapacityRevoked"}, retries: 3, want: admissioncheck.Rejected},
		{unit: ready, says: []string{"CapacityRevoked"}, retries: 3, want: admissioncheck.Retry},
	} {
		t.Run(fmt.Sprint(i, c.says), func(t *testing.T) {
			unit := reserved()
			o := asked(t, unit, theConfig())
			unit.Status.Phase = v1alpha1.PhaseDequeued
			unit.Status.AdmissionChecks[0] = v1alpha1.AdmissionCheckState{
				Name: theCheck, State: admissioncheck.Ready, RetryCount: &c.retries,
			}
			c.unit(unit)
			o.says(c.says...)
			require.Equal(t, plan{answer: planFor(o).answer}, planFor(o), "it makes and deletes nothing")
			require.Equal(t, c.want, planFor(o).answer.State)
			o.config = nil
			require.Equal(t, c.want, planFor(o).answer.State, "whatever becomes of its configuration")
			o.requests = nil
			require.Empty(t, planFor(o).answer.State)
		})
	}
}

// An answer about the request of a former reservation says nothing about this one.
func TestARequestOfAFormerReservation(t *testing.T) {
	for _, says := range []string{"Provisioned", "Failed", "CapacityRevoked", "BookingExpired"} {
		unit := reserved()
		o := asked(t, unit, theConfig())
		o.says(says)
		unit.Status.Attempts++
		p := planFor(o)
		require.Equal(t, admissioncheck.Pending, p.answer.State, says)
		require.NotNil(t, p.createRequest)
		require.Len(t, p.deleteRequests, 1)
		require.Equal(t, o.requests[0].Name, p.deleteRequests[0].Name)

		unit.Status.Phase = v1alpha1.PhaseRunning
		p = planFor(o)
		require.Empty(t, p.answer.State, says)
		require.Len(t, p.deleteRequests, 1)
	}
	unit := reserved()
	o := asked(t, unit, theConfig())
	unit.Status.AdmissionChecks = append(unit.Status.AdmissionChecks, v1alpha1.AdmissionCheckState{Name: "second"})
	o.check = "second"
	p := planFor(o)
	require.Empty(t, p.deleteRequests, "it is about another check of the same reservation")
	require.NotNil(t, p.createRequest)
}

func TestARequestThatIsNotAsItShouldBe(t *testing.T) {
	o := asked(t, reserved(), theConfig())
	o.says("Provisioned")
	o.requests[0].OwnerReferences[0].UID = "u-2"
	p := planFor(o)
	require.Equal(t, admissioncheck.Pending, p.answer.State, "somebody has made it before")
	require.Contains(t, p.answer.Message, "somebody else's")
	require.Equal(t, plan{answer: p.answer}, p)
	require.NotZero(t, p.answer.RequeueAfter)

	for what, change := range map[string]func(*observed){
		"fewer pods are asked for": func(o *observed) { o.requests[0].Spec.PodSets[1].Count = 1 },
		"the parameters changed":   func(o *observed) { o.config.Parameters["zone"] = "b" },
		"the class changed":        func(o *observed) { o.config.ProvisioningClassName = "other" },
		"the job grows":            func(o *observed) { o.unit.Spec.PodSets[1].Count = 5 },
		"a pod set is not managed": func(o *observed) { o.config.ManagedResources = []corev1.ResourceName{"nvidia.com/gpu"} },
	} {
		o := asked(t, reserved(), theConfig())
		o.says("Provisioned")
		change(o)
		p := planFor(o)
		require.Equal(t, admissioncheck.Pending, p.answer.State, what)
		require.Len(t, p.deleteRequests, 1, what)
		require.Nil(t, p.createRequest, what)
	}

	o = asked(t, reserved(), theConfig())
	o.says("Provisioned")
	o.requests[0].DeletionTimestamp = &metav1.Time{}
	require.Equal(t, plan{answer: planFor(o).answer}, planFor(o))
	require.Equal(t, admissioncheck.Pending, planFor(o).answer.State)
}

// A template of an earlier request of the same name is about to be deleted. A foreign template stays.
func TestTemplatesThatAreThereAlready(t *testing.T) {
	o := asked(t, reserved(), theConfig())
	name := o.requests[0].Name + "-0"
	o.requests[0].UID = types.UID("r-2")
	p := planFor(o)
	require.Empty(t, p.createTemplates)
	require.Equal(t, time.Second, p.answer.RequeueAfter)
	o.templates[name].Labels = nil
	p = planFor(o)
	require.Contains(t, p.answer.Message, "somebody else's")
	delete(o.templates, name)
	p = planFor(o)
	require.Len(t, p.createTemplates, 1)
	require.Equal(t, types.UID("r-2"), p.createTemplates[0].OwnerReferences[0].UID)
}

// A template of ours can have other contents, because somebody made it in our name or its job changed. Capacity is not
// requested with it, and an answer about it does not count.
func TestATemplateOfOtherContent(t *testing.T) {
	for name, edit := range map[string]func(*corev1.PodTemplateSpec){
		"asks for less": func(pods *corev1.PodTemplateSpec) {
			pods.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1m")}
		},
		"runs elsewhere": func(pods *corev1.PodTemplateSpec) { pods.Spec.NodeSelector = map[string]string{"cheap": "yes"} },
		"has no pods":    func(pods *corev1.PodTemplateSpec) { pods.Spec.Containers = nil },
	} {
		o := asked(t, reserved(), theConfig())
		edit(&o.templates[o.requests[0].Name+"-1"].Template)
		for _, says := range []string{"Accepted", "Provisioned"} {
			o.says(says)
			p := planFor(o)
			require.Equal(t, admissioncheck.Retry, p.answer.State, name)
			require.Contains(t, p.answer.Message, o.requests[0].Name+"-1", name)
			require.Empty(t, p.createTemplates, name)
		}
	}
	o := asked(t, reserved(), theConfig())
	for _, template := range o.templates {
		// As the API server completes it.
		template.Template.Spec.SchedulerName, template.Template.Spec.RestartPolicy = "default-scheduler", "Always"
		template.Template.Spec.DNSPolicy = "ClusterFirst"
		template.Template.Spec.SecurityContext = &corev1.PodSecurityContext{}
		for i := range template.Template.Spec.Containers {
			c := &template.Template.Spec.Containers[i]
			c.ImagePullPolicy, c.TerminationMessagePath = "Always", "/dev/termination-log"
			for j := range c.Ports {
				c.Ports[j].Protocol = "TCP"
			}
		}
	}
	o.says("Provisioned")
	require.Equal(t, admissioncheck.Ready, planFor(o).answer.State)
}

func TestWhatCapacityIsAskedFor(t *testing.T) {
	unit, config := reserved(), theConfig()
	unit.Status.Admissions = []v1alpha1.Admission{{Name: "driver", Replicas: 1}, {Name: "workers", Replicas: 3}}
	unit.Status.ReclaimablePods = []v1alpha1.ReclaimablePod{{Name: "driver", Count: 1}}
	p := planFor(&observed{unit: unit, check: theCheck, config: config})
	require.Len(t, p.createRequest.Spec.PodSets, 1, "the driver has ended")
	require.EqualValues(t, 3, p.createRequest.Spec.PodSets[0].Count, "as many as were admitted")

	unit = reserved()
	config.ManagedResources = []corev1.ResourceName{"nvidia.com/gpu", "memory"}
	o := asked(t, unit, config)
	o.says("Provisioned")
	updates := planFor(o).answer.PodSetUpdates
	require.Equal(t, []v1alpha1.PodSetUpdate{{Name: "workers", Annotations: map[string]string{
		"autoscaling.x-k8s.io/consume-provisioning-request": requestName(unit, theCheck),
		"autoscaling.x-k8s.io/provisioning-class-name":      "check-capacity.autoscaling.x-k8s.io",
	}}}, updates)

	config.ManagedResources = []corev1.ResourceName{"memory"}
	p = planFor(&observed{unit: unit, check: theCheck, config: config})
	require.Equal(t, admissioncheck.Ready, p.answer.State)
	require.Nil(t, p.createRequest)

	unit.Spec.PodSets[0].Template.Raw = []byte(`{"spec":{"containers":{}}}`)
	config.ManagedResources = nil
	p = planFor(&observed{unit: unit, check: theCheck, config: config})
	require.Equal(t, admissioncheck.Rejected, p.answer.State)
	require.Contains(t, p.answer.Message, `pod set "driver"`)
	unit.Spec.PodSets = nil
	require.Equal(t, admissioncheck.Rejected, planFor(&observed{unit: unit, check: theCheck, config: config}).answer.State)
	require.Equal(t, admissioncheck.Pending, planFor(&observed{unit: unit, check: theCheck}).answer.State)
}

func TestDetailsOfTheClassComeIntoThePods(t *testing.T) {
	config := theConfig()
	config.PodSetUpdates = &v1beta1.ProvisioningRequestPodSetUpdates{
		NodeSelector: []v1beta1.ProvisioningRequestNodeSelector{{Key: "pool", ValueFromProvisioningClassDetail: "Pool"}},
	}
	o := asked(t, reserved(), config)
	o.says("Provisioned")
	require.Equal(t, admissioncheck.Pending, planFor(o).answer.State)
	o.requests[0].Status.ProvisioningClassDetails = map[string]autoscalingv1.Detail{"Pool": "p1"}
	a := planFor(o).answer
	require.Equal(t, admissioncheck.Ready, a.State)
	require.Equal(t, map[string]string{"pool": "p1"}, a.PodSetUpdates[1].NodeSelector)
}

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		strategy *v1beta1.ProvisioningRequestRetryStrategy
		retries  int32
		want     time.Duration // zero: it is rejected
	}{
		{nil, 0, time.Minute},
		{nil, 1, 2 * time.Minute},
		{nil, 3, 0},
		{&v1beta1.ProvisioningRequestRetryStrategy{}, 2, 4 * time.Minute},
		{&v1beta1.ProvisioningRequestRetryStrategy{BackoffLimitCount: ptr.To[int32](1000)}, 999, 30 * time.Minute},
		{&v1beta1.ProvisioningRequestRetryStrategy{BackoffLimitCount: ptr.To[int32](0)}, 0, 0},
		{&v1beta1.ProvisioningRequestRetryStrategy{BackoffBaseSeconds: ptr.To[int32](0)}, 0, time.Second},
		{&v1beta1.ProvisioningRequestRetryStrategy{BackoffMaxSeconds: ptr.To[int32](5)}, 0, 5 * time.Second},
		{&v1beta1.ProvisioningRequestRetryStrategy{BackoffLimitCount: ptr.To[int32](1 << 30),
			BackoffBaseSeconds: ptr.To[int32](1<<31 - 1), BackoffMaxSeconds: ptr.To[int32](1<<31 - 1)}, 1 << 29,
			(1<<31 - 1) * time.Second},
	} {
		unit, config := reserved(), theConfig()
		unit.Status.AdmissionChecks[0].RetryCount = &c.retries
		config.RetryStrategy = c.strategy
		o := asked(t, unit, config)
		o.says("Failed")
		a := planFor(o).answer
		require.Equal(t, c.want, a.RequeueAfter)
		require.Equal(t, c.want == 0, a.State == admissioncheck.Rejected)
	}
}
