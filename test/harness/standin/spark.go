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

package standin

import (
	"context"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var sparkApplicationKind = schema.GroupVersionKind{
	Group: "sparkoperator.k8s.io", Version: "v1beta2", Kind: "SparkApplication",
}

const (
	sparkSubmitted        = "SUBMITTED"
	sparkSubmissionFailed = "SUBMISSION_FAILED"
	sparkRunning          = "RUNNING"
	sparkSucceeding       = "SUCCEEDING"
	sparkFailing          = "FAILING"
	sparkCompleted        = "COMPLETED"
	sparkFailed           = "FAILED"
	sparkSuspending       = "SUSPENDING"
	sparkSuspended        = "SUSPENDED"
	sparkResuming         = "RESUMING"
	sparkUnknown          = "UNKNOWN"
)

// sparkApplications plays spark-operator 2.4 and later in cluster mode, and the Spark driver. The driver creates
// executors, replaces failed ones, and deletes them at its end or deletion. Facts are from the controller and the
// webhook in kubeflow/spark-operator; for Spark itself see sparkPod. An older operator is the CRD without suspend.
//
// Left out: INVALIDATING (a new spec restarts a running application), restarts, time to live, Services and monitoring.
// Also left out: batch schedulers that create PodGroups, and executors that come and go with the tasks.
type sparkApplications struct{ base }

func (o *sparkApplications) kind() schema.GroupVersionKind { return sparkApplicationKind }

func (o *sparkApplications) watch(b *builder.Builder) *builder.Builder {
	return podsByLabel(b, sparkAppLabel)
}

func (o *sparkApplications) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	app, err := o.get(ctx, sparkApplicationKind, request.NamespacedName)
	if err != nil || app == nil || app.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, err
	}
	before := app.DeepCopy()
	if st := status(app); st["driverInfo"] == nil {
		st["driverInfo"] = map[string]any{} // the CRD requires it
	}
	if err := o.step(ctx, app); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, o.writeStatus(ctx, before, app)
}

func sparkState(app *unstructured.Unstructured) string {
	return text(app.Object, "status", "applicationState", "state")
}

func setSparkState(app *unstructured.Unstructured, state, message string) {
	next := map[string]any{"state": state}
	set(next, "errorMessage", message)
	status(app)["applicationState"] = next
}

// step does what the state asks for and may set the next one.
func (o *sparkApplications) step(ctx context.Context, app *unstructured.Unstructured) error {
	state := sparkState(app)
	switch state {
	case sparkCompleted, sparkFailed:
		return o.observe(ctx, app)
	case sparkSuspended:
		return o.resume(ctx, app)
	case sparkSuspending:
		if err := o.deleteDriver(ctx, app); err != nil {
			return err
		}
		setSparkState(app, sparkSuspended, "")
		resetSpark(app)
		return nil
	}
	if flag(app.Object, "spec", "suspend") {
		setSparkState(app, sparkSuspending, "")
		return nil
	}
	switch state {
	case "", sparkResuming:
		return o.submit(ctx, app)
	case sparkSubmissionFailed, sparkFailing: // with the restart policy Never
		set(status(app), "terminationTime", textOr(timestamp(o.clock.Now()), app.Object, "status", "terminationTime"))
		setSparkState(app, sparkFailed, text(app.Object, "status", "applicationState", "errorMessage"))
	case sparkSucceeding:
		setSparkState(app, sparkCompleted, "")
	default:
		return o.observe(ctx, app)
	}
	return nil
}

// resume waits until the driver of the run before is gone, then for the spec to say so.
func (o *sparkApplications) resume(ctx context.Context, app *unstructured.Unstructured) error {
	if err := o.deleteExecutors(ctx, app); err != nil {
		return err
	}
	there, err := o.driver(ctx, app)
	if err == nil && there == nil && !flag(app.Object, "spec", "suspend") {
		setSparkState(app, sparkResuming, "")
	}
	return err
}

func resetSpark(app *unstructured.Unstructured) {
	st := status(app)
	delete(st, "sparkApplicationId")
	delete(st, "executorState")
	st["driverInfo"] = map[string]any{}
}

// submit is spark-submit: it makes the driver pod.
func (o *sparkApplications) submit(ctx context.Context, app *unstructured.Unstructured) error {
	st := status(app)
	st["submissionID"], st["sparkApplicationId"] = o.suffix(), "spark-"+o.suffix()
	st["lastSubmissionAttemptTime"] = timestamp(o.clock.Now())
	st["submissionAttempts"] = numberOr(0, st, "submissionAttempts") + 1
	st["driverInfo"] = map[string]any{"podName": sparkDriverName(app)}
	template, err := sparkPod(app, sparkDriver)
	if err == nil {
		// The owner is added by the operator's webhook.
		pod := newPod(app.GetNamespace(), template, ownedBy(app))
		pod.Name = sparkDriverName(app)
		err = o.client.Create(ctx, pod)
	}
	if err != nil {
		setSparkState(app, sparkSubmissionFailed, err.Error())
		return nil
	}
	st["executionAttempts"] = numberOr(0, st, "executionAttempts") + 1
	setSparkState(app, sparkSubmitted, "")
	return nil
}

func sparkDriverName(app *unstructured.Unstructured) string {
	return textOr(app.GetName()+"-driver", app.Object, "spec", "driver", "podName")
}

// driver is nil when there is none.
func (o *sparkApplications) driver(ctx context.Context, app *unstructured.Unstructured) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	found, err := o.find(ctx, app.GetNamespace(), sparkDriverName(app), pod)
	if err != nil || !found || !metav1.IsControlledBy(pod, app) {
		return nil, err
	}
	return pod, nil
}

// deleteDriver: the operator deletes the driver, whose shutdown deletes the executors.
func (o *sparkApplications) deleteDriver(ctx context.Context, app *unstructured.Unstructured) error {
	driver, err := o.driver(ctx, app)
	if err != nil {
		return err
	}
	if driver != nil {
		if err := o.deletePods(ctx, []corev1.Pod{*driver}); err != nil {
			return err
		}
	}
	return o.deleteExecutors(ctx, app)
}

func (o *sparkApplications) executors(ctx context.Context, app *unstructured.Unstructured) ([]corev1.Pod, error) {
	return o.pods(ctx, app.GetNamespace(), map[string]string{
		sparkAppLabel: app.GetName(), sparkRoleLabel: sparkExecutor,
	}, nil)
}

func (o *sparkApplications) deleteExecutors(ctx context.Context, app *unstructured.Unstructured) error {
	pods, err := o.executors(ctx, app)
	if err != nil {
		return err
	}
	return o.deletePods(ctx, pods)
}

// observe derives the state of the application from that of the driver.
func (o *sparkApplications) observe(ctx context.Context, app *unstructured.Unstructured) error {
	driver, err := o.driver(ctx, app)
	if err != nil {
		return err
	}
	switch state := sparkState(app); {
	case state == sparkCompleted || state == sparkFailed:
	case driver == nil:
		// The operator waits for a while for the driver of a new submission; here submit makes it.
		status(app)["terminationTime"] = timestamp(o.clock.Now())
		setSparkState(app, sparkFailing, "driver pod not found")
	case state != sparkOf(driver):
		message := ""
		if next := sparkOf(driver); next == sparkSucceeding || next == sparkFailing {
			status(app)["terminationTime"] = timestamp(o.clock.Now())
			if next == sparkFailing {
				message = "driver container failed"
			}
		}
		setSparkState(app, sparkOf(driver), message)
	}
	if driver == nil || ended(*driver) || driver.DeletionTimestamp != nil {
		if err := o.deleteExecutors(ctx, app); err != nil {
			return err
		}
	} else if running(*driver) {
		if err := o.makeExecutors(ctx, app, driver); err != nil {
			return err
		}
	}
	return o.setExecutorState(ctx, app)
}

func sparkOf(driver *corev1.Pod) string {
	switch driver.Status.Phase {
	case corev1.PodRunning:
		return sparkRunning
	case corev1.PodSucceeded:
		return sparkSucceeding
	case corev1.PodFailed:
		return sparkFailing
	case corev1.PodUnknown:
		return sparkUnknown
	default:
		return sparkSubmitted
	}
}

// makeExecutors is what the driver does while it runs. Each executor has a number that no other one of the run had.
// Doubtful: one that succeeds, as none does while its driver runs, is not replaced.
func (o *sparkApplications) makeExecutors(
	ctx context.Context, app *unstructured.Unstructured, driver *corev1.Pod,
) error {
	pods, err := o.executors(ctx, app)
	if err != nil {
		return err
	}
	last := int64(0)
	known, _, _ := unstructured.NestedMap(app.Object, "status", "executorState")
	for name := range known {
		last = max(last, sparkExecutorNumber(name))
	}
	for _, pod := range pods {
		last = max(last, sparkExecutorNumber(pod.Name))
	}
	lives := func(pod corev1.Pod) bool { return !failed(pod) && pod.DeletionTimestamp == nil }
	wanted, err := sparkExecutors(app)
	if err != nil {
		return err
	}
	for range wanted - count(pods, lives) {
		last++
		template, err := sparkPod(app, sparkExecutor)
		if err != nil {
			return err
		}
		pod := newPod(app.GetNamespace(), template,
			[]metav1.OwnerReference{*metav1.NewControllerRef(driver, corev1.SchemeGroupVersion.WithKind("Pod"))})
		pod.Name = app.GetName() + "-" + text(app.Object, "status", "submissionID") + "-exec-" + itoa(last)
		pod.Labels[sparkExecutorLabel] = itoa(last)
		if err := client.IgnoreAlreadyExists(o.client.Create(ctx, pod)); err != nil {
			return err
		}
	}
	return nil
}

func sparkExecutorNumber(name string) int64 {
	n, err := strconv.ParseInt(name[strings.LastIndex(name, "-")+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (o *sparkApplications) setExecutorState(ctx context.Context, app *unstructured.Unstructured) error {
	pods, err := o.executors(ctx, app)
	if err != nil {
		return err
	}
	states := map[string]any{}
	for name, old := range part(app.Object, "status", "executorState") {
		switch {
		case old == sparkCompleted || old == sparkFailed:
			states[name] = old
		case sparkState(app) == sparkRunning:
			states[name] = sparkUnknown
		case sparkState(app) == sparkCompleted:
			states[name] = sparkCompleted
		default:
			states[name] = sparkFailed
		}
	}
	for _, pod := range pods {
		states[pod.Name] = map[corev1.PodPhase]string{
			corev1.PodRunning: sparkRunning, corev1.PodSucceeded: sparkCompleted, corev1.PodFailed: sparkFailed,
			corev1.PodUnknown: sparkUnknown, corev1.PodPending: "PENDING", "": "PENDING",
		}[pod.Status.Phase]
	}
	if len(states) > 0 {
		status(app)["executorState"] = states
	}
	return nil
}
