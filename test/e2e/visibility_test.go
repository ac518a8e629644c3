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
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const visibilityAPI = "/apis/visibility.koord-queue.x-k8s.io/v1alpha1"

// The Deployments that visibilityCluster runs, and the only replica of the scheduler.
const (
	schedulerDeployment  = "koord-jobqueue-scheduler"
	controllerDeployment = "jobqueue-controller"

	schedulerReplica controlplane.Component = schedulerDeployment + "-0"
)

// visibilityCluster is a cluster that runs what is installed, so that the scheduler serves the aggregated API behind
// the aggregation layer.
func visibilityCluster(t *testing.T, name string) *cluster {
	t.Helper()
	c := start(t, name, controlplane.Options{Nodes: 2, Progress: func(message string) {
		fmt.Fprintln(os.Stderr, name+":", message)
	}})
	c.scheduler = schedulerReplica
	require.NoError(t, c.StartInstalled(t.Context()))
	return c
}

// scale has a Deployment run, or not.
func (c *cluster) scale(t *testing.T, namespace, name string, replicas int32) {
	t.Helper()
	_, err := c.kube.AppsV1().Deployments(namespace).UpdateScale(t.Context(), name, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       autoscalingv1.ScaleSpec{Replicas: replicas},
	}, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return c.Running(controlplane.Component(name+"-0")) == (replicas > 0)
	}, soon, pace)
}

// as is a client of somebody who has the rights of bindings alone.
func (c *cluster) as(t *testing.T, user string) *kubernetes.Clientset {
	t.Helper()
	config := c.RESTConfig(controlplane.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// kubectlJobqueue runs the plugin as somebody who has the rights of bindings alone.
func (c *cluster) kubectlJobqueue(t *testing.T, user string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := cli.Command(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard})
	command.SetArgs(append(args, "--kubeconfig", c.Kubeconfig(controlplane.Admin), "--as", user,
		"--as-group", "system:authenticated"))
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// look is `kubectl get --raw`.
func look(t *testing.T, client *kubernetes.Clientset, path string, into any) (string, error) {
	t.Helper()
	path, query, _ := strings.Cut(path, "?")
	request := client.RESTClient().Get().AbsPath(visibilityAPI + path)
	for _, parameter := range strings.Split(query, "&") {
		if key, value, found := strings.Cut(parameter, "="); found {
			request = request.Param(key, value)
		}
	}
	raw, err := request.DoRaw(t.Context())
	if err == nil && into != nil {
		require.NoError(t, json.Unmarshal(raw, into))
	}
	return string(raw), err
}

func (c *cluster) bind(t *testing.T, user, role, namespace string) {
	t.Helper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	var err error
	if namespace == "" {
		_, err = c.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	} else {
		_, err = c.kube.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: namespace}, RoleRef: ref, Subjects: subjects},
			metav1.CreateOptions{})
	}
	require.NoError(t, err)
}

// sharedQueue has jobs of two departments in one blocking queue: red runs, blue waits before red, and behind it.
func (c *cluster) sharedQueue(t *testing.T) (red, blue string) {
	t.Helper()
	red, blue = c.namespace(t, "red"), c.namespace(t, "blue")
	c.quota(t, red, "firm", 4, 4, isParent())
	c.quota(t, red, "red-quota", 0, 4, under("firm"))
	c.quota(t, blue, "blue-quota", 0, 4, under("firm"))
	c.createQueue(t, &schedulingv1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: "shared", Namespace: schedulingv1alpha1.DefaultQueueNamespace},
		Spec:       schedulingv1alpha1.QueueSpec{QueuePolicy: schedulingv1alpha1.PolicyBlock},
	})
	job := func(namespace, name string, p int, cores string) {
		c.create(t, newJob(namespace, name, suspended, ofQuota(namespace+"-quota"), inQueue("shared"), priority(p),
			cpu(cores), runs(time.Hour)))
	}
	job(red, "running", 9, "3")
	c.waitPhase(t, red, "running", schedulingv1alpha1.PhaseRunning)
	job(blue, "secret", 8, "4")
	c.waitReason(t, blue, "secret", "QuotaExceeded")
	job(red, "second", 7, "1")
	job(blue, "hidden", 6, "1")
	admin := c.as(t, "nobody")
	require.Eventually(t, func() bool {
		admin, err := kubernetes.NewForConfig(c.RESTConfig(controlplane.Admin))
		require.NoError(t, err)
		var page v1alpha1.WaitingUnitList
		_, err = look(t, admin, "/queues/shared/waitingunits", &page)
		return err == nil && len(page.Items) == 3
	}, soon, pace)
	_, err := look(t, admin, "/queues", nil)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	return red, blue
}

// Each sees what its rights say: a department its own units in full, and of those of others place and size.
func TestVisibilityIsFilteredByRights(t *testing.T) {
	c := visibilityCluster(t, "visibility")
	red, blue := c.sharedQueue(t)
	c.bind(t, "rose", "jobqueue-viewer", red)
	c.bind(t, "boss", "jobqueue-operator", "")
	rose, boss := c.as(t, "rose"), c.as(t, "boss")

	t.Run("the screens of three persons", func(t *testing.T) {
		c.bind(t, "lead", "jobqueue-viewer", red)
		c.bind(t, "lead", "jobqueue-viewer", blue)
		c.showScreens(t, red)
	})
	t.Run("kubectl jobqueue shows each what he may see", func(t *testing.T) {
		why, err := c.kubectlJobqueue(t, "rose", "why", "second", "-n", red)
		require.NoError(t, err)
		t.Log("\n" + why)
		for _, text := range []string{"Who must end   red/running (3).", "1 job: a job of another namespace (cpu: 4)"} {
			require.Contains(t, why, text)
		}
		require.NotContains(t, why, "secret")
		list, err := c.kubectlJobqueue(t, "rose", "list", "-n", red)
		require.NoError(t, err)
		t.Log("\n" + list)
		require.Regexp(t, `job/second +shared +2 +Pending +QuotaExceeded +cpu: 1 `, list)
		require.Regexp(t, `job/running +shared +- +Running`, list)
		list, err = c.kubectlJobqueue(t, "rose", "list", "-A")
		require.NoError(t, err)
		require.Regexp(t, `red +job/second +shared +2 +Pending`, list)
		require.NotContains(t, list, "blue")
		_, err = c.kubectlJobqueue(t, "rose", "why", "secret", "-n", blue)
		require.ErrorContains(t, err, "forbidden")
		_, err = c.kubectlJobqueue(t, "rose", "why", "none", "-n", red)
		require.ErrorContains(t, err, `no QueueUnit in namespace "red" stands for job "none"`)

		top, err := c.kubectlJobqueue(t, "boss", "top", "-A", "--resource", "cpu")
		require.NoError(t, err)
		t.Log("\n" + top)
		require.Regexp(t, `\n +red-quota +cpu +0 +\S+ +4 +3 +0 +1 +1`, top)
		_, err = c.kubectlJobqueue(t, "rose", "top", "-A")
		require.ErrorContains(t, err, "forbidden")
		all, err := c.kubectlJobqueue(t, "boss", "list", "-A", "-o", "name")
		require.NoError(t, err)
		require.Len(t, strings.Fields(all), 4)
		all, err = c.kubectlJobqueue(t, "lead", "list", "-A", "-o", "name")
		require.NoError(t, err)
		require.Len(t, strings.Fields(all), 4)
		_, err = c.kubectlJobqueue(t, "rose", "queues", "-A")
		require.ErrorContains(t, err, "forbidden")
	})

	t.Run("kubectl jobqueue forecasts to each what he may see", func(t *testing.T) {
		when, err := c.kubectlJobqueue(t, "rose", "when", "second", "-n", red)
		require.NoError(t, err)
		t.Log("\n" + when)
		require.Contains(t, when, "no time is known: QuotaExceeded: ")
		require.Contains(t, when, "nothing says for how long 1 job will hold quota (red/running)\n")
		_, err = c.kubectlJobqueue(t, "rose", "when", "secret", "-n", blue)
		require.ErrorContains(t, err, "forbidden")
		c.patchQueue(t, "shared", `{"spec":{"executionTime":{"defaultSeconds":7200}}}`)
		require.Eventually(t, func() bool {
			when, err = c.kubectlJobqueue(t, "rose", "when", "second", "-n", red)
			return err == nil && strings.HasPrefix(when, "about ")
		}, soon, pace)
		t.Log("\n" + when)
		require.Regexp(t, `^about .*\d\d:\d\d \(in .*\), at the latest .*\d\d:\d\d; 1 job ahead\n`+
			`rests on: time limits of 2 jobs\n`, when)
		require.NotContains(t, when, "secret")
		wide, err := c.kubectlJobqueue(t, "rose", "list", "-o", "wide", "-n", red)
		require.NoError(t, err)
		t.Log("\n" + wide)
		require.Regexp(t, `job/second .* about .*\d\d:\d\d +red-quota`, wide)
		wide, err = c.kubectlJobqueue(t, "boss", "list", "-o", "wide", "-A", "--queue", "shared")
		require.NoError(t, err)
		require.Regexp(t, `job/secret .* about `, wide)
		why, err := c.kubectlJobqueue(t, "rose", "why", "second", "-n", red)
		require.NoError(t, err)
		require.Contains(t, why, "\n  When           About ")
		c.patchQueue(t, "shared", `{"spec":{"executionTime":null}}`)
	})

	t.Run("kubectl jobqueue shows each the past that he may see", func(t *testing.T) {
		past, err := c.kubectlJobqueue(t, "rose", "history", "job/running", "-n", red)
		require.NoError(t, err)
		t.Log("\n" + past)
		require.Regexp(t, `Enqueued +job/running +shared +red-quota +0 `, past)
		require.Regexp(t, `Admitted +job/running +shared +red-quota +1 +cpu: 3`, past)
		require.Regexp(t, `Running +job/running`, past)
		past, err = c.kubectlJobqueue(t, "rose", "history", "--queue", "shared", "--since", "24h", "-n", red)
		require.NoError(t, err)
		require.NotContains(t, past, "secret")
		_, err = c.kubectlJobqueue(t, "rose", "history", "-n", blue)
		require.ErrorContains(t, err, "forbidden")
		_, err = c.kubectlJobqueue(t, "rose", "usage", "-A")
		require.ErrorContains(t, err, "forbidden")
		past, err = c.kubectlJobqueue(t, "boss", "history", "--queue", "shared", "-A")
		require.NoError(t, err)
		require.Regexp(t, `blue +\S+ +Enqueued +job/secret`, past)
		usage, err := c.kubectlJobqueue(t, "boss", "usage", "-A", "--since", "30d")
		require.NoError(t, err)
		t.Log("\n" + usage)
		require.Regexp(t, `red-quota +red +1 +\d`, usage)
	})

	t.Run("the operator reads all", func(t *testing.T) {
		var page v1alpha1.WaitingUnitList
		raw, err := look(t, boss, "/queues/shared/waitingunits?limit=2", &page)
		require.NoError(t, err)
		t.Log(raw)
		require.Equal(t, []string{"blue/secret", "red/second"},
			[]string{page.Items[0].Namespace + "/" + page.Items[0].Name, page.Items[1].Namespace + "/" + page.Items[1].Name})
		require.Equal(t, "2", page.Continue)
		require.True(t, page.Leader)
		var unit v1alpha1.Unit
		raw, err = look(t, boss, "/namespaces/red/units/second/full", &unit)
		require.NoError(t, err)
		t.Log(raw)
		require.Equal(t, "blue/secret", unit.Status.First)
		require.True(t, slices.ContainsFunc(unit.Status.Shortages, func(s v1alpha1.Shortage) bool {
			return s.Level == "firm" && s.ClaimedBy == "blue/secret"
		}))
		var held v1alpha1.UnitList
		raw, err = look(t, boss, "/quotas/red-quota/units", &held)
		require.NoError(t, err)
		t.Log(raw)
		require.Equal(t, "running", held.Items[0].Name)
		require.Equal(t, int64(3), held.Items[0].Status.Held.Cpu().Value())
		for _, path := range []string{"/queues", "/queues/shared", "/quotas", "/quotas/firm", "/audits"} {
			raw, err := look(t, boss, path, nil)
			require.NoError(t, err, path)
			t.Log(path, raw)
		}
		err = boss.RESTClient().Post().AbsPath(visibilityAPI, "audits").Body([]byte(`{}`)).Do(t.Context()).Error()
		require.True(t, apierrors.IsForbidden(err), "an operator requests no audits: %v", err)
	})
	t.Run("a department reads its own", func(t *testing.T) {
		for _, path := range []string{
			"/units", "/units/second", "/localqueues", "/localqueues/shared", "/localqueues/shared/waitingunits",
			"/localquotas", "/localquotas/red-quota",
		} {
			raw, err := look(t, rose, "/namespaces/red"+path, nil)
			require.NoError(t, err, path)
			t.Log(path, raw)
			for _, name := range []string{"secret", "hidden", "blue"} {
				require.NotContains(t, raw, name, path)
			}
		}
		var page v1alpha1.WaitingUnitList
		_, err := look(t, rose, "/namespaces/red/localqueues/shared/waitingunits", &page)
		require.NoError(t, err)
		require.Len(t, page.Items, 3)
		require.Empty(t, page.Items[0].Name)
		require.Equal(t, int64(4), page.Items[0].Requested.Cpu().Value())
		require.Equal(t, "second", page.Items[1].Name)
		for _, path := range []string{
			"/queues", "/queues/shared/waitingunits", "/quotas", "/quotas/blue-quota/units", "/audits",
			"/namespaces/red/units/second/full", "/namespaces/blue/units", "/namespaces/blue/units/secret",
			"/namespaces/blue/localqueues/shared/waitingunits",
		} {
			_, err := look(t, rose, path, nil)
			require.True(t, apierrors.IsForbidden(err), "%s: %v", path, err)
		}
		_, err = look(t, rose, "/namespaces/red/localquotas/blue-quota", nil)
		require.True(t, apierrors.IsNotFound(err), "%v", err)
		unit := c.unit(t, red, "second")
		require.NotContains(t, unit.Status.Message, blue, "nor does the object say whose claim it is")
	})
	t.Run("the page in the cluster shows each caller what it may see", func(t *testing.T) { c.showsMany(t, red) })
	t.Run("anonymous reads nothing", func(t *testing.T) {
		service, err := c.kube.CoreV1().Services("koordinator-system").Get(t.Context(), "koord-jobqueue-visibility",
			metav1.GetOptions{})
		require.NoError(t, err)
		direct := fmt.Sprintf("https://%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port)
		for name, headers := range map[string]map[string]string{
			"no identity":     {},
			"a claimed one":   {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"},
			"a made-up token": {"Authorization": "Bearer nonsense"},
		} {
			require.Equal(t, http.StatusUnauthorized, get(t, direct+visibilityAPI+"/queues", headers), name)
		}
		own := map[string]string{"Authorization": "Bearer " + c.RESTConfig(controlplane.KWOKIdentity).BearerToken}
		require.Equal(t, http.StatusForbidden, get(t, direct+visibilityAPI+"/queues", own))
		require.Equal(t, http.StatusNotFound,
			get(t, c.URL(schedulerReplica)+"/apis/v1/plugins/JobQueue/queues", nil), "the plain port")
		require.Equal(t, http.StatusNotFound, get(t, c.URL(schedulerReplica)+"/debug/pprof/", nil))
		require.Equal(t, http.StatusNotFound, get(t, c.URL(schedulerReplica)+"/debug/flags/v", nil))
	})
	t.Run("kubectl jobqueue shows each the preemptions that he may see", c.showPreemptions)
	t.Run("kubectl jobqueue shows what would be in an observed namespace", c.observes)
	t.Run("kubectl means the objects", func(t *testing.T) {
		groups, err := c.kube.Discovery().ServerGroups()
		require.NoError(t, err)
		var order []string
		for _, g := range groups.Groups {
			if g.Name == schedulingv1alpha1.GroupName || g.Name == v1alpha1.GroupName {
				order = append(order, g.Name)
			}
		}
		require.Equal(t, []string{schedulingv1alpha1.GroupName, v1alpha1.GroupName}, order)
	})
	c.agrees(t)
}

// get is a request from inside of the cluster, by somebody who verifies no certificate.
func get(t *testing.T, url string, headers map[string]string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for key, value := range headers {
		req.Header.Set(key, value)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// available says whether the API server takes the visibility API to be served.
func (c *cluster) available(t *testing.T) bool {
	t.Helper()
	service, err := c.dyn.Resource(apiServices).Get(t.Context(), "v1alpha1."+v1alpha1.GroupName, metav1.GetOptions{})
	require.NoError(t, err)
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, condition := range conditions {
		if condition := condition.(map[string]any); condition["type"] == "Available" {
			return condition["status"] == "True"
		}
	}
	return false
}

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// The cost of an APIService, and how to avoid it: docs/operators/visibility.md.
func TestNoNamespaceGoesWhileNobodyAnswers(t *testing.T) {
	c := visibilityCluster(t, "visibility-away")
	c.namespace(t, "before")
	gone := func(name string) bool {
		_, err := c.kube.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}
	namespaces := c.kube.CoreV1().Namespaces()
	require.NoError(t, namespaces.Delete(t.Context(), "before", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return gone("before") }, soon, pace)

	c.scale(t, "koordinator-system", schedulerDeployment, 0)
	begin := time.Now()
	require.Eventually(t, func() bool { return !c.available(t) }, 2*soon, pace)
	t.Logf("the API server noticed after %s", time.Since(begin).Round(time.Second))
	c.namespace(t, "stuck")
	require.NoError(t, namespaces.Delete(t.Context(), "stuck", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		ns, err := namespaces.Get(t.Context(), "stuck", metav1.GetOptions{})
		require.NoError(t, err, "it went though nobody answered")
		for _, condition := range ns.Status.Conditions {
			if condition.Type == corev1.NamespaceDeletionDiscoveryFailure && condition.Status == corev1.ConditionTrue {
				t.Log(condition.Reason, condition.Message)
				return true
			}
		}
		return false
	}, soon, pace)

	require.NoError(t, c.dyn.Resource(apiServices).Delete(t.Context(), "v1alpha1."+v1alpha1.GroupName,
		metav1.DeleteOptions{}))
	begin = time.Now()
	require.Eventually(t, func() bool { return gone("stuck") }, 2*soon, pace)
	t.Logf("the namespace went %s after the APIService", time.Since(begin).Round(time.Second))
}
