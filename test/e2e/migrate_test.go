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
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/command"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// tryMigrate runs jobqueue-migrate as the administrator, and returns what it writes.
func (c *cluster) tryMigrate(t *testing.T, args ...string) (out, findings string, err error) {
	t.Helper()
	var written, said bytes.Buffer
	cmd := command.New(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &written, ErrOut: &said})
	cmd.SetArgs(append(args, "--kubeconfig", c.Kubeconfig(controlplane.Admin)))
	err = cmd.ExecuteContext(t.Context())
	return written.String(), said.String(), err
}

func (c *cluster) migrate(t *testing.T, args ...string) (out, findings string) {
	t.Helper()
	out, findings, err := c.tryMigrate(t, args...)
	require.NoError(t, err, "%s", findings)
	return out, findings
}

func objectsOf(t *testing.T, text string) (objects []*unstructured.Unstructured) {
	t.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		require.NoError(t, err)
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// forget deletes what a test has applied: quotas that keep something back would do so for other tests.
func (c *cluster) forget(t *testing.T, objects []*unstructured.Unstructured) {
	t.Cleanup(func() {
		for _, object := range objects {
			gvr := schema.GroupVersionResource{
				Group: object.GroupVersionKind().Group, Version: object.GroupVersionKind().Version,
				Resource: strings.ToLower(object.GetKind()) + "s",
			}
			err := c.dyn.Resource(gvr).Namespace(object.GetNamespace()).
				Delete(context.Background(), object.GetName(), metav1.DeleteOptions{})
			if err != nil {
				t.Logf("delete %s %s: %v", object.GetKind(), object.GetName(), err)
			}
		}
	})
}

// mayUse asks the API server whether somebody may use a quota in a namespace.
func (c *cluster) mayUse(t *testing.T, quota, namespace, user string, groups ...string) bool {
	t.Helper()
	review, err := c.kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: elasticQuotas.Group, Resource: elasticQuotas.Resource, Name: quota, Verb: "use", Namespace: namespace,
			},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.Allowed
}

// TestMigratedConfigurationRunsJobs applies what each example of another system gives, and runs a job through each of
// the queues.
func TestMigratedConfigurationRunsJobs(t *testing.T) {
	c := sharedCluster(t)
	research := c.namespace(t, "research")
	example := func(name string) string { return filepath.Join("../../examples/migrate", name+".yaml") }
	run := func(t *testing.T, source string, input ...string) map[string]bool {
		t.Helper()
		from := append([]string{"from-" + source}, input...)
		dry, findings := c.migrate(t, from...)
		t.Logf("\n%s", findings)
		objects := objectsOf(t, dry)
		require.NotEmpty(t, objects)
		applied, _ := c.migrate(t, append(from, "--dry-run=false")...)
		c.forget(t, objects)
		require.Equal(t, len(objects), strings.Count(applied, " applied\n"), applied)
		again, _ := c.migrate(t, append(from, "--dry-run=false")...)
		require.Equal(t, applied, again, "applying is idempotent")
		ns := c.namespace(t, "from-"+source)
		quotas := map[string]bool{}
		var jobs []*batchv1.Job
		for _, object := range objects {
			if object.GetKind() != "Queue" {
				continue
			}
			name := object.GetName()
			quota, _, _ := strings.Cut(object.GetAnnotations()[schedulingv1alpha1.AnnotationAvailableQuotaShort], ",")
			if quota == "" {
				quota = name
			}
			quotas[quota] = true
			jobs = append(jobs, newJob(ns, "job-"+name, suspended, ofQuota(quota), inQueue(name)))
		}
		c.create(t, jobs...)
		c.waitDone(t, ns, len(jobs), 2*soon)
		t.Logf("from %s: %d objects, and %d jobs ran, one in each queue", source, len(objects), len(jobs))
		return quotas
	}

	t.Run("a name that another namespace has", func(t *testing.T) {
		c.quota(t, research, "climate", 1, 1)
		applied, _, err := c.tryMigrate(t, "from-kueue", "-f", example("kueue"), "--dry-run=false")
		require.ErrorContains(t, err, "nothing is applied: namespace research has an ElasticQuota climate")
		require.Empty(t, applied)
		require.NoError(t, c.dyn.Resource(elasticQuotas).Namespace(research).
			Delete(t.Context(), "climate", metav1.DeleteOptions{}))
	})
	t.Run("Kueue", func(t *testing.T) {
		require.Equal(t, map[string]bool{"climate": true, "genome": true}, run(t, "kueue", "-f", example("kueue")))
		const account = "system:serviceaccount:"
		require.True(t, c.mayUse(t, "genome", research, account+research+":default"))
		require.False(t, c.mayUse(t, "genome", "default", account+"default:default"))
	})
	t.Run("YuniKorn", func(t *testing.T) {
		text, err := os.ReadFile(example("yunikorn"))
		require.NoError(t, err)
		ns := c.namespace(t, "yunikorn")
		_, err = c.kube.CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "yunikorn-configs"},
			Data:       map[string]string{"queues.yaml": string(text)},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Equal(t, map[string]bool{"optics": true, "plasma": true, "open": true},
			run(t, "yunikorn", "--from-cluster"))
		require.True(t, c.mayUse(t, "optics", research, "ada"))
		require.True(t, c.mayUse(t, "plasma", research, "bob", "physicists"))
		require.False(t, c.mayUse(t, "plasma", research, "ada"))
		require.True(t, c.mayUse(t, "open", research, "eve", "system:authenticated"))
	})
	t.Run("Volcano", func(t *testing.T) {
		require.Equal(t, map[string]bool{"vision": true, "speech": true, "guests": true},
			run(t, "volcano", "-f", example("volcano")))
	})
	t.Run("Koord-Queue", func(t *testing.T) {
		require.Equal(t, map[string]bool{"film": true}, run(t, "koord-queue", "-f", example("koord-queue")))
		read, _ := c.migrate(t, "from-koord-queue", "--from-cluster")
		require.Contains(t, read, "name: film\n")
	})
}
