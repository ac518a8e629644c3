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

// Package checkpoint_test runs the training script of the example in the way a pod runs it.
package checkpoint_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// answer is what the API server got from the script, and the checkpoint at that time.
type answer struct {
	request, token, kind, body string
	step                       int
}

// pod is what a pod has: files of the downward API and of its account, a volume, and an API server.
type pod struct {
	t       *testing.T
	dir     string
	env     []string
	answers chan answer
}

func newPod(t *testing.T) *pod {
	p := &pod{t: t, dir: t.TempDir(), answers: make(chan answer)}
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		saved, _ := os.ReadFile(filepath.Join(p.dir, "checkpoint"))
		step, _ := strconv.Atoi(string(saved))
		p.answers <- answer{
			r.Method + " " + r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(body), step,
		}
	}))
	t.Cleanup(server.Close)
	p.write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	p.write("token", "secret")
	p.write("namespace", "research")
	p.notice("")
	p.env = append(os.Environ(), "API="+server.URL, "ACCOUNT="+p.dir+"/", "PODINFO="+filepath.Join(p.dir, "annotations"),
		"CHECKPOINT="+filepath.Join(p.dir, "checkpoint"), "HOSTNAME=train-x")
	return p
}

// write a file at once, as the kubelet does.
func (p *pod) write(name, text string) {
	path := filepath.Join(p.dir, name)
	require.NoError(p.t, os.WriteFile(path+".tmp", []byte(text), 0o600))
	require.NoError(p.t, os.Rename(path+".tmp", path))
}

// notice writes the annotations as the downward API does; empty is none.
func (p *pod) notice(at string) {
	text := `koord-queue/related-queueunit="research/train"`
	if at != "" {
		text += "\nkoord-queue/suspend-at=" + strconv.Quote(at)
	}
	p.write("annotations", text)
}

// train runs the script until the function is called.
func (p *pod) train() (suspend func()) {
	cmd := exec.CommandContext(p.t.Context(), "python3", "train.py")
	cmd.Env, cmd.Stderr = p.env, os.Stderr
	require.NoError(p.t, cmd.Start())
	return func() {
		require.NoError(p.t, cmd.Process.Kill())
		_ = cmd.Wait() // the error is that of the kill
	}
}

func (p *pod) answer() answer {
	select {
	case a := <-p.answers:
		return a
	case <-time.After(time.Minute):
		require.Fail(p.t, "no answer")
		return answer{}
	}
}

// The script writes its checkpoint and then acknowledges, once for each notice, and goes on from there in its next run.
func TestTheScriptAcknowledges(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	p := newPod(t)
	suspend := p.train()
	p.notice("2026-01-02T03:05:05Z")
	first := p.answer()
	require.Equal(t, "PATCH /api/v1/namespaces/research/pods/train-x", first.request)
	require.Equal(t, "Bearer secret", first.token)
	require.Equal(t, "application/merge-patch+json", first.kind)
	require.NotZero(t, first.step)
	at, found := strings.CutPrefix(first.body, `{"metadata": {"annotations": {"koord-queue/checkpointed": "`)
	require.True(t, found, first.body)
	checkpointed, err := time.Parse(time.RFC3339, strings.TrimSuffix(at, `"}}}`))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), checkpointed, time.Minute)

	p.notice("2026-01-02T04:05:05Z")
	second := p.answer()
	require.Greater(t, second.step, first.step)
	suspend()
	p.notice("2026-01-02T05:05:05Z")
	suspend = p.train()
	require.Equal(t, second.step+1, p.answer().step)
	suspend()
}

// The manifest gives the script the file that it reads.
func TestTheManifestHasTheFile(t *testing.T) {
	text, err := os.ReadFile("job.yaml")
	require.NoError(t, err)
	job := batchv1.Job{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(strings.Split(string(text), "\n---\n")[0]), &job))
	spec := &job.Spec.Template.Spec
	script, err := os.ReadFile("train.py")
	require.NoError(t, err)
	path := spec.Containers[0].VolumeMounts[0].MountPath + "/" + spec.Volumes[0].DownwardAPI.Items[0].Path
	require.Contains(t, string(script), `"PODINFO", "`+path+`"`)
	require.Equal(t, "metadata.annotations", spec.Volumes[0].DownwardAPI.Items[0].FieldRef.FieldPath)
}
