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
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// recording has the objects that the processes of a release left in the API server, and the installed manifests.
type recording struct {
	release
	// manifests are what was applied to install the release, as YAML.
	manifests []byte
	// objects as they were in the store, owners before what they own.
	objects []*unstructured.Unstructured
}

// release is the first document of a recording.
type release struct {
	// Commit is what was built.
	Commit string `json:"commit"`
	// Recorded is when the objects were read.
	Recorded time.Time `json:"recorded"`
}

const (
	lastRelease   = "testdata/upgrade"
	objectsFile   = "objects.yaml"
	manifestsFile = "manifests.yaml"
)

// stored says where the store has the objects of a kind: by namespace, if they have one, and name below the prefix.
// Kinds that own come before those that are owned.
var stored = []struct{ kind, prefix string }{
	{"Node", "/registry/minions/"},
	{"Namespace", "/registry/namespaces/"},
	{"PriorityClass", "/registry/priorityclasses/"},
	{"ElasticQuotaTree", "/registry/scheduling.sigs.k8s.io/elasticquotatrees/"},
	{"ElasticQuota", "/registry/scheduling.sigs.k8s.io/elasticquotas/"},
	{"Queue", "/registry/scheduling.x-k8s.io/queues/"},
	{"Job", "/registry/jobs/"},
	{"PyTorchJob", "/registry/kubeflow.org/pytorchjobs/"},
	{"QueueUnit", "/registry/scheduling.x-k8s.io/queueunits/"},
	{"Pod", "/registry/pods/"},
}

// storeClient is a client of the store of a cluster.
func (c *cluster) storeClient(t *testing.T) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{c.URL(controlplane.Etcd)}, DialTimeout: soon, Logger: zap.NewNop(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// readStore fills in the objects of a cluster that did not come with Kubernetes or with the manifests. Managed fields
// are left out, which make up most of the text: neither process applies anything on the server side.
func (r *recording) readStore(t *testing.T, c *cluster) {
	t.Helper()
	client := c.storeClient(t)
	for _, s := range stored {
		response, err := client.Get(t.Context(), s.prefix, clientv3.WithPrefix())
		require.NoError(t, err)
		for _, kv := range response.Kvs {
			o := decodeStored(t, kv.Value)
			require.Equal(t, s.kind, o.GetKind(), "%s", kv.Key)
			system := strings.HasPrefix(o.GetName(), "kube-") || strings.HasPrefix(o.GetName(), "system-") ||
				o.GetName() == "default" || o.GetName() == "koord-queue" || o.GetName() == "koordinator-system"
			if (s.kind == "Namespace" || s.kind == "PriorityClass") && system {
				continue
			}
			o.SetManagedFields(nil)
			r.objects = append(r.objects, o)
		}
	}
}

// decodeStored reads an object as the store has it: protobuf for kinds of Kubernetes, JSON for others.
func decodeStored(t *testing.T, value []byte) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if value[0] == '{' {
		require.NoError(t, json.Unmarshal(value, &o.Object))
		return o
	}
	typed, kind, err := scheme.Codecs.UniversalDeserializer().Decode(value, nil, nil)
	require.NoError(t, err)
	o.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	require.NoError(t, err)
	o.SetGroupVersionKind(*kind)
	return o
}

// writeFiles replaces the directory of the recording.
func (r *recording) writeFiles(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	var text strings.Builder
	documents := []any{r.release}
	for _, o := range r.objects {
		documents = append(documents, o.Object)
	}
	text.WriteString("# What this release left in the API server. Written by hack/record-release.sh.\n")
	for i, d := range documents {
		if i > 0 {
			text.WriteString("---\n")
		}
		document, err := yaml.Marshal(d)
		require.NoError(t, err)
		text.Write(document)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, objectsFile), []byte(text.String()), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, manifestsFile), r.manifests, 0o644))
}

func readRecording(t *testing.T, dir string) *recording {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, objectsFile))
	require.NoError(t, err)
	r := &recording{}
	for i, document := range strings.Split(string(text), "\n---\n") {
		if i == 0 {
			require.NoError(t, yaml.Unmarshal([]byte(document), &r.release))
			continue
		}
		// Numbers are read as a client reads them.
		content, err := yaml.YAMLToJSON([]byte(document))
		require.NoError(t, err)
		o := &unstructured.Unstructured{}
		require.NoError(t, o.UnmarshalJSON(content))
		r.objects = append(r.objects, o)
	}
	r.manifests, err = os.ReadFile(filepath.Join(dir, manifestsFile))
	require.NoError(t, err)
	return r
}

// find returns an object of the recording, nil if it has none.
func (r *recording) find(kind, namespace, name string) *unstructured.Unstructured {
	for _, o := range r.objects {
		if o.GetKind() == kind && o.GetNamespace() == namespace && o.GetName() == name {
			return o
		}
	}
	return nil
}

// all objects of a kind.
func (r *recording) all(kind string) []*unstructured.Unstructured {
	var of []*unstructured.Unstructured
	for _, o := range r.objects {
		if o.GetKind() == kind {
			of = append(of, o)
		}
	}
	return of
}

// moveTo has the objects recorded at another time: all times in them keep their distances to it.
func (r *recording) moveTo(now time.Time) {
	by := now.Sub(r.Recorded)
	for _, o := range r.objects {
		shift(o.Object, by)
	}
	r.Recorded = now
}

// age has one job with its unit and its pods be older than it is.
func (r *recording) age(namespace, job string, by time.Duration) {
	for _, o := range r.objects {
		if o.GetNamespace() == namespace && (o.GetName() == job || o.GetLabels()["job-name"] == job) {
			shift(o.Object, -by)
		}
	}
}

// shift moves every time in a value.
func shift(value any, by time.Duration) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			v[key] = shift(item, by)
		}
	case []any:
		for i, item := range v {
			v[i] = shift(item, by)
		}
	case string:
		if moment, err := time.Parse(time.RFC3339, v); err == nil {
			return moment.Add(by).UTC().Format(time.RFC3339)
		}
	}
	return value
}

// place writes the objects into the store of a cluster that serves their kinds. They keep UIDs, generations and
// statuses, which no request could set. The API server also reads JSON in place of protobuf.
func (r *recording) place(t *testing.T, c *cluster) {
	t.Helper()
	client := c.storeClient(t)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	for _, s := range stored {
		for _, o := range r.all(s.kind) {
			key := s.prefix
			if o.GetNamespace() != "" {
				key += o.GetNamespace() + "/"
			}
			content, err := json.Marshal(o.Object)
			require.NoError(t, err)
			_, err = client.Put(ctx, key+o.GetName(), string(content))
			require.NoError(t, err)
		}
	}
	require.NotEmpty(t, r.objects)
}

// A recording that is read is the one that was written, and all its times move together.
func TestARecordingIsReadAsItWasWritten(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	object := func(kind, name, created string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind,
			"metadata": map[string]any{"namespace": "n", "name": name, "creationTimestamp": created,
				"annotations": map[string]any{"text": "a\n---\nb", "number": "1e3"}},
			"spec": map[string]any{"count": int64(3), "list": []any{created, "12"}},
		}}
	}
	written := &recording{release: release{Commit: "c", Recorded: at}, manifests: []byte("kind: Any\n"),
		objects: []*unstructured.Unstructured{
			object("Job", "j", "2026-01-02T03:00:00Z"), object("Pod", "p", "2026-01-02T03:01:00Z"),
		}}
	dir := t.TempDir()
	written.writeFiles(t, dir)
	read := readRecording(t, dir)
	require.Equal(t, written, read)

	read.moveTo(at.Add(time.Hour))
	read.age("n", "j", 24*time.Hour)
	require.Equal(t, object("Job", "j", "2026-01-01T04:00:00Z"), read.find("Job", "n", "j"))
	require.Equal(t, object("Pod", "p", "2026-01-02T04:01:00Z"), read.find("Pod", "n", "p"))
	require.Nil(t, read.find("Job", "n", "p"), fmt.Sprint(read.all("Job")))
}
