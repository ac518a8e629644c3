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

package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// MemoryOptions say how many units of each variant are created.
type MemoryOptions struct {
	Setting
	Objects  int
	Watchers int
}

// UnitMemory is what waiting units cost the API server while they exist.
type UnitMemory struct {
	Objects  int             `json:"objects"`
	Watchers int             `json:"watchers"`
	Variants []VariantMemory `json:"variants"`
}

// VariantMemory is what one unit costs.
type VariantMemory struct {
	Name string `json:"name"`
	// ObjectBytes is the unit as JSON with all that the API server adds.
	ObjectBytes int `json:"objectBytes"`
	// LiveKiB is what stays on the heap of the API server, by a collection of garbage before and after.
	LiveKiB float64 `json:"liveKiB"`
}

// memoryVariant is a pod template that units have.
type memoryVariant struct {
	name     string
	template []byte
}

// memoryVariants are a template with only a request, an ordinary one, and the reduced form that a unit has of it.
func memoryVariants() ([]memoryVariant, error) {
	reduced, err := podtemplate.Reduce([]byte(ordinaryTemplate))
	return []memoryVariant{
		{name: "a request alone"}, {"whole template", []byte(ordinaryTemplate)}, {"reduced template", reduced},
	}, err
}

// ordinaryTemplate is that of a training job: env, mounts, a sidecar, a selector.
const ordinaryTemplate = `{
	"metadata": {"labels": {"app": "train", "team": "vision", "quota.scheduling.koordinator.sh/name": "ceiling"},
		"annotations": {"example.com/run": "2026-11-23-4711", "prometheus.io/scrape": "true", "prometheus.io/port": "9090"}},
	"spec": {
		"schedulerName": "koord-scheduler", "restartPolicy": "Never", "priorityClassName": "batch",
		"serviceAccountName": "train", "nodeSelector": {"node.example.com/accelerator": "a100"},
		"tolerations": [{"key": "accelerator", "operator": "Exists", "effect": "NoSchedule"}],
		"initContainers": [{"name": "fetch", "image": "registry.example.com/tools/fetch:1.4",
			"args": ["--from=s3://datasets/imagenet", "--to=/data"],
			"envFrom": [{"secretRef": {"name": "object-store"}}],
			"volumeMounts": [{"name": "data", "mountPath": "/data"}],
			"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
		"containers": [
			{"name": "train", "image": "registry.example.com/vision/train:2026-11",
				"command": ["python", "-m", "train"],
				"args": ["--model=resnet50", "--epochs=90", "--batch-size=256", "--lr=0.1", "--data=/data", "--out=/out"],
				"env": [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "NCCL_SOCKET_IFNAME", "value": "eth0"},
					{"name": "OMP_NUM_THREADS", "value": "8"}, {"name": "WANDB_PROJECT", "value": "vision"},
					{"name": "WANDB_API_KEY", "valueFrom": {"secretKeyRef": {"name": "wandb", "key": "key"}}},
					{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
					{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
					{"name": "PYTHONUNBUFFERED", "value": "1"}],
				"ports": [{"name": "metrics", "containerPort": 9090}],
				"volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "out", "mountPath": "/out"},
					{"name": "shm", "mountPath": "/dev/shm"}],
				"resources": {"requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"},
					"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}},
				"readinessProbe": {"httpGet": {"path": "/healthz", "port": 9090}, "periodSeconds": 10}},
			{"name": "logs", "image": "registry.example.com/tools/fluent-bit:3.1",
				"env": [{"name": "SINK", "value": "loki.logging.svc:3100"}],
				"volumeMounts": [{"name": "out", "mountPath": "/out", "readOnly": true}],
				"resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}],
		"volumes": [{"name": "data", "emptyDir": {}}, {"name": "shm", "emptyDir": {"medium": "Memory"}},
			{"name": "out", "persistentVolumeClaim": {"claimName": "out"}}]}}`

// MeasureUnitMemory creates pending units, of one variant after the other, and reads the heap of the API server that
// remains. Only watchers of the units run at the same time.
func MeasureUnitMemory(ctx context.Context, o MemoryOptions) (_ *UnitMemory, err error) {
	screen := o.begin()
	defer screen.end()
	variants, err := memoryVariants()
	if err != nil {
		return nil, err
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{
		Dir: o.Dir, Bin: o.Bin, APIServerArgs: []string{"--profiling=true"}, Progress: screen.line,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cp.Stop()) }()
	if err := errors.Join(cp.Install(ctx), cp.ApplyObjects(ctx, namespace(unitNamespace))); err != nil {
		return nil, err
	}
	c, err := newClient(cp.RESTConfig(controlplane.Admin), o.Workers)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range o.Watchers {
		go func() {
			version, err := c.version(ctx, unitsPath(unitNamespace))
			for err == nil && ctx.Err() == nil {
				err = c.watchFrom(ctx, unitsPath(unitNamespace), version, func(*event) {})
			}
		}()
	}
	m := &UnitMemory{Objects: o.Objects, Watchers: o.Watchers}
	for i, v := range variants {
		measured, err := v.measure(ctx, c, fmt.Sprintf("unit-%d", i), o.Objects)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		screen.line(fmt.Sprintf("%s: %.1f KiB per unit", v.name, measured.LiveKiB))
		m.Variants = append(m.Variants, measured)
	}
	return m, nil
}

// measure creates n units whose names begin with prefix.
func (v *memoryVariant) measure(
	ctx context.Context, c *client, prefix string, n int,
) (measured VariantMemory, err error) {
	measured.Name = v.name
	before, err := c.liveHeap(ctx)
	if err != nil {
		return measured, err
	}
	err = c.each(ctx, n, func(ctx context.Context, i int) error {
		body, err := v.unit(fmt.Sprintf("%s-%06d", prefix, i))
		if err != nil {
			return err
		}
		return c.create(ctx, unitsPath(unitNamespace), body)
	})
	if err != nil {
		return measured, err
	}
	controlplane.Sleep(ctx, settle)
	after, err := c.liveHeap(ctx)
	if err != nil {
		return measured, err
	}
	measured.LiveKiB = (after - before) / 1024 / float64(n)
	one, err := c.get(ctx, unitsPath(unitNamespace)+"/"+prefix+"-000000")
	measured.ObjectBytes = len(one)
	return measured, err
}

func (v *memoryVariant) unit(name string) ([]byte, error) {
	object := unitObject(name, "ceiling", 0, "1")
	if v.template == nil {
		return encode(object), nil
	}
	var template map[string]any
	if err := json.Unmarshal(v.template, &template); err != nil {
		return nil, err
	}
	err := unstructured.SetNestedSlice(object, []any{map[string]any{
		"name": "main", "count": int64(1), "template": template,
	}}, "spec", "podSet")
	return encode(object), err
}

// liveHeap of the API server in bytes, right after a collection of garbage.
func (c *client) liveHeap(ctx context.Context) (float64, error) {
	for range 2 { // the second one collects objects that waited for finalizers
		if _, err := c.streams.Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
			return 0, err
		}
	}
	raw, err := c.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	const name = "go_memstats_alloc_bytes"
	samples, err := parseMetrics(bytes.NewReader(raw), name)
	if err != nil {
		return 0, err
	}
	if len(samples[name]) != 1 {
		return 0, fmt.Errorf("the API server does not export %s", name)
	}
	return float64(samples[name][0].Value), nil
}

// Print writes the table.
func (m *UnitMemory) Print(out io.Writer) {
	fmt.Fprintf(out, "heap of the API server that a waiting unit takes, %d units of each, %d watchers\n\n",
		m.Objects, m.Watchers)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "variant\tbytes of the unit\tKiB on the heap\t")
	for i := range m.Variants {
		v := &m.Variants[i]
		fmt.Fprintf(table, "%s\t%d\t%.1f\t\n", v.Name, v.ObjectBytes, v.LiveKiB)
	}
	_ = table.Flush()
}

// settle is how long the API server has to send what watchers are to see.
const settle = 300 * time.Millisecond
