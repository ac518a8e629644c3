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
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// WriteCostOptions say how much is written to find out what a write costs.
type WriteCostOptions struct {
	Setting
	// Objects of each variant and round; Rounds, in which all variants take turns.
	Objects, Rounds int
	// Watchers of the objects of each variant.
	Watchers int
	// Variants to measure, by name; none means all.
	Variants []string
	// Definitions are files with other CustomResourceDefinitions of QueueUnits, by name: variants, too.
	Definitions map[string]string
}

// WriteCosts is what the writes in the life of a unit cost the API server.
type WriteCosts struct {
	Objects  int           `json:"objects"`
	Rounds   int           `json:"rounds"`
	Watchers int           `json:"watchers"`
	Load     []string      `json:"load"`
	Variants []VariantCost `json:"variants"`
}

// VariantCost is what the writes of one variant cost, the median over the rounds.
type VariantCost struct {
	Name        string            `json:"name"`
	Steps       [lifeSteps]Cost   `json:"steps"`
	ObjectBytes int               `json:"objectBytes"`
	Rounds      [][lifeSteps]Cost `json:"rounds"`
}

// lifeSteps are the writes in the life of a unit: it is created, admitted, finished.
const lifeSteps = 3

// Cost of one write: processor time of the API server without garbage collection, and what has to be collected.
type Cost struct {
	CPUMs        float64 `json:"cpuMs"`
	AllocatedKiB float64 `json:"allocatedKiB"`
}

// writeVariant is a way to define and to write units. What is not set is as in the product.
type writeVariant struct {
	name string
	// file of the definition; define changes its schema.
	file   string
	define func(schema *apiextensionsv1.JSONSchemaProps)
	// unit and status change what is written, send how.
	unit, status func(fields map[string]any)
	send         func(*rest.Request) *rest.Request
	// write makes the request for a status; whole says that it needs all fields of it.
	write func(c *rest.RESTClient, path string, stored, status map[string]any) *rest.Request
	whole bool
}

func writeVariants() []writeVariant {
	return []writeVariant{
		{name: "product"},
		{name: "json patch", write: jsonPatchStatus, whole: true},
		{name: "put status alone", write: putStatus("labels", "annotations", "ownerReferences", "finalizers"), whole: true},
		{name: "put status and metadata", write: putStatus(), whole: true},
		{name: "ignore unknown fields",
			send: func(r *rest.Request) *rest.Request { return r.Param("fieldValidation", "Ignore") }},
		{name: "answer with metadata", send: func(r *rest.Request) *rest.Request {
			return r.SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
		}},
		{name: "no rules", define: everywhere(func(s *apiextensionsv1.JSONSchemaProps) { s.XValidations = nil })},
		{name: "lists with keys", define: keyedLists},
		{name: "no schema", define: noSchema},
		{name: "no conditions", status: func(s map[string]any) { delete(s, "conditions") }},
		{name: "no pod sets", unit: func(u map[string]any) { unstructured.RemoveNestedField(u, "spec", "podSet") }},
	}
}

func mergeStatus(c *rest.RESTClient, path string, stored, status map[string]any) *rest.Request {
	u := unstructured.Unstructured{Object: stored}
	return c.Patch(types.MergePatchType).AbsPath(path, u.GetName(), "status").Body(encode(map[string]any{
		"metadata": map[string]any{"resourceVersion": u.GetResourceVersion(), "uid": string(u.GetUID())},
		"status":   status,
	}))
}

func jsonPatchStatus(c *rest.RESTClient, path string, stored, status map[string]any) *rest.Request {
	u := unstructured.Unstructured{Object: stored}
	replace := func(path string, value any) any { return map[string]any{"op": "replace", "path": path, "value": value} }
	return c.Patch(types.JSONPatchType).AbsPath(path, u.GetName(), "status").Body(encode([]any{
		replace("/metadata/resourceVersion", u.GetResourceVersion()),
		replace("/metadata/uid", string(u.GetUID())),
		replace("/status", status),
	}))
}

// putStatus sends no spec, no managed fields and none of the fields of metadata that are named.
func putStatus(without ...string) func(c *rest.RESTClient, path string, stored, status map[string]any) *rest.Request {
	return func(c *rest.RESTClient, path string, stored, status map[string]any) *rest.Request {
		u := unstructured.Unstructured{Object: maps.Clone(stored)}
		metadata, _, _ := unstructured.NestedMap(stored, "metadata")
		for _, field := range append([]string{"managedFields", "creationTimestamp", "generation"}, without...) {
			delete(metadata, field)
		}
		delete(u.Object, "spec")
		u.Object["metadata"], u.Object["status"] = metadata, status
		return c.Put().AbsPath(path, u.GetName(), "status").SetHeader("Content-Type", "application/json").
			Body(encode(u.Object))
	}
}

func everywhere(change func(*apiextensionsv1.JSONSchemaProps)) func(*apiextensionsv1.JSONSchemaProps) {
	var visit func(*apiextensionsv1.JSONSchemaProps)
	visit = func(s *apiextensionsv1.JSONSchemaProps) {
		change(s)
		for name, p := range s.Properties {
			visit(&p)
			s.Properties[name] = p
		}
		if s.Items != nil {
			visit(s.Items.Schema)
		}
		if s.AdditionalProperties != nil {
			visit(s.AdditionalProperties.Schema)
		}
	}
	return visit
}

// keyedLists gives the lists that most units have keys for server-side apply.
func keyedLists(schema *apiextensionsv1.JSONSchemaProps) {
	keyed := "map"
	for _, at := range []struct{ part, list, key string }{
		{"spec", "podSet", "name"}, {"status", "admissions", "name"}, {"status", "conditions", "type"},
	} {
		fields := schema.Properties[at.part].Properties
		list := fields[at.list]
		list.XListType, list.XListMapKeys = &keyed, []string{at.key}
		fields[at.list] = list
	}
}

func noSchema(schema *apiextensionsv1.JSONSchemaProps) {
	anything := true
	for _, part := range []string{"spec", "status"} {
		schema.Properties[part] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}
	}
	schema.XValidations = nil
}

// costMeasurement measures the variants, each of which has a group of its own.
type costMeasurement struct {
	WriteCostOptions
	screen   *screen
	client   *client
	cp       *controlplane.ControlPlane
	variants []writeVariant
}

func (m *costMeasurement) group(i int) string { return fmt.Sprintf("variant%02d.perf.example.com", i) }

func (m *costMeasurement) path(i int) string {
	return "/apis/" + m.group(i) + "/v1alpha1/namespaces/" + ceilingNamespace + "/queueunits"
}

// MeasureWriteCosts creates units, admits and finishes them, and reads after each step how much processor time the API
// server took and how much it allocated. The variants take turns in one control plane.
//
// Collections of garbage fall into a step or not, by chance, and are a third of all: so they are switched off, forced
// between steps, and what there is to collect is counted instead.
func MeasureWriteCosts(ctx context.Context, o WriteCostOptions) (_ *WriteCosts, err error) {
	screen := o.begin()
	m := &costMeasurement{WriteCostOptions: o, screen: screen}
	defer m.screen.end()
	if err := m.choose(); err != nil {
		return nil, err
	}
	// Read by the processes that are started, no more by this one.
	for name, value := range map[string]string{"GOGC": "off", "GOMEMLIMIT": "4GiB"} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	m.cp, err = controlplane.Start(ctx, controlplane.Options{
		Dir: o.Dir, Bin: o.Bin, APIServerArgs: []string{"--profiling=true"}, Progress: m.screen.line,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.cp.Stop()) }()
	if m.client, err = newClient(m.cp.RESTConfig(controlplane.Admin), o.Workers); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := m.define(ctx); err != nil {
		return nil, err
	}
	return m.measure(ctx)
}

// choose the variants that are wanted.
func (m *costMeasurement) choose() error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	all := writeVariants()
	for _, name := range slices.Sorted(maps.Keys(m.Definitions)) {
		all = append(all, writeVariant{name: name, file: m.Definitions[name]})
	}
	for _, v := range all {
		if v.file == "" {
			v.file = filepath.Join(root, "manifests", "crd", "scheduling.x-k8s.io_queueunits.yaml")
		}
		if len(m.Variants) == 0 || slices.Contains(m.Variants, v.name) {
			m.variants = append(m.variants, v)
		}
	}
	if len(m.variants) == 0 || len(m.variants) < len(m.Variants) {
		names := make([]string, 0, len(all))
		for _, v := range all {
			names = append(names, v.name)
		}
		return fmt.Errorf("variants are %s", strings.Join(names, ", "))
	}
	return nil
}

func (m *costMeasurement) define(ctx context.Context) error {
	objects := []*unstructured.Unstructured{namespace(ceilingNamespace)}
	for i := range m.variants {
		crd, err := m.variants[i].definition(m.group(i))
		if err != nil {
			return err
		}
		objects = append(objects, crd)
	}
	if err := m.cp.ApplyObjects(ctx, objects...); err != nil {
		return err
	}
	for i := range m.variants {
		for range m.Watchers {
			go func() {
				version, err := m.client.version(ctx, m.path(i))
				for err == nil && ctx.Err() == nil {
					err = m.client.watchFrom(ctx, m.path(i), version, func(*event) {})
				}
			}()
		}
	}
	return nil
}

// definition in a group of its own.
func (v *writeVariant) definition(group string) (*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(v.file)
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		return nil, fmt.Errorf("%s: %w", v.file, err)
	}
	crd.Name, crd.Spec.Group, crd.Spec.Names.ShortNames = crd.Spec.Names.Plural+"."+group, group, nil
	if v.define != nil {
		v.define(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(encode(&crd), &object.Object); err != nil {
		return nil, err
	}
	delete(object.Object, "status")
	return object, nil
}

func (m *costMeasurement) measure(ctx context.Context) (*WriteCosts, error) {
	costs := &WriteCosts{Objects: m.Objects, Rounds: m.Rounds, Watchers: m.Watchers, Load: []string{loadAverage()}}
	for i := range m.variants {
		costs.Variants = append(costs.Variants, VariantCost{Name: m.variants[i].name})
	}
	// The first round warms up and does not count.
	for round := range m.Rounds + 1 {
		for i := range m.variants {
			v := &costs.Variants[i]
			steps, size, err := m.live(ctx, i, round)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", v.Name, err)
			}
			m.screen.line(fmt.Sprintf("round %d of %d, %s: %v", round, m.Rounds, v.Name, steps))
			if round > 0 {
				v.Rounds, v.ObjectBytes = append(v.Rounds, steps), size
			}
		}
	}
	costs.Load = append(costs.Load, loadAverage())
	for i := range costs.Variants {
		v := &costs.Variants[i]
		for s := range lifeSteps {
			v.Steps[s].CPUMs = medianOf(v.Rounds, func(r [lifeSteps]Cost) float64 { return r[s].CPUMs })
			v.Steps[s].AllocatedKiB = medianOf(v.Rounds, func(r [lifeSteps]Cost) float64 { return r[s].AllocatedKiB })
		}
	}
	return costs, nil
}

func medianOf(rounds [][lifeSteps]Cost, of func([lifeSteps]Cost) float64) float64 {
	values := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		values = append(values, of(r))
	}
	slices.Sort(values)
	if len(values) == 0 {
		return 0
	}
	return values[len(values)/2]
}

// live has all units of a round live once.
func (m *costMeasurement) live(ctx context.Context, i, round int) (costs [lifeSteps]Cost, size int, err error) {
	v, path := &m.variants[i], m.path(i)
	admitted, err := v.statusOf(admittedBody())
	if err != nil {
		return costs, 0, err
	}
	finished, err := v.statusOf(finishedBody)
	if err != nil {
		return costs, 0, err
	}
	if v.whole {
		all := maps.Clone(admitted)
		maps.Copy(all, finished)
		finished = all
	}
	write := mergeStatus
	if v.write != nil {
		write = v.write
	}
	units := make([]map[string]any, m.Objects)
	steps := [lifeSteps]func(n int) *rest.Request{
		func(n int) *rest.Request {
			body := encode(v.unitOf(fmt.Sprintf("unit-%03d-%06d", round, n), m.group(i)))
			return m.client.writes.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body)
		},
		func(n int) *rest.Request { return write(m.client.writes, path, units[n], admitted) },
		func(n int) *rest.Request { return write(m.client.writes, path, units[n], finished) },
	}
	for s, step := range steps {
		costs[s], err = m.cost(ctx, func(ctx context.Context, n int) error {
			request := step(n)
			if v.send != nil {
				request = v.send(request)
			}
			raw, err := request.DoRaw(ctx)
			if err != nil {
				return fmt.Errorf("%w: %s", err, raw)
			}
			return json.Unmarshal(raw, &units[n])
		})
		if err != nil {
			return costs, 0, err
		}
	}
	last, err := m.client.get(ctx, path+"/"+fmt.Sprintf("unit-%03d-%06d", round, 0))
	if err != nil {
		return costs, 0, err
	}
	return costs, len(last), m.client.writes.Delete().AbsPath(path).Do(ctx).Error()
}

func (v *writeVariant) statusOf(body []byte) (map[string]any, error) {
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	status, _, err := unstructured.NestedMap(object, "status")
	if v.status != nil {
		v.status(status)
	}
	return status, err
}

// unitOf is a unit as the controller writes it, with the job behind it.
func (v *writeVariant) unitOf(name, group string) map[string]any {
	var object map[string]any
	if err := json.Unmarshal(unitBody(name, "ceiling", 0, "1"), &object); err != nil {
		panic(err) // it was encoded here
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetAPIVersion(group + "/" + v1alpha1.SchemeGroupVersion.Version)
	const uid = "11111111-2222-3333-4444-555555555555"
	_ = unstructured.SetNestedField(object, map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "namespace": ceilingNamespace, "name": name, "uid": uid,
	}, "spec", "consumerRef")
	if v.unit != nil {
		v.unit(object)
	}
	return object
}

// settle is how long the API server has to send what watchers are to see.
const settle = 300 * time.Millisecond

func (m *costMeasurement) cost(ctx context.Context, write func(ctx context.Context, n int) error) (Cost, error) {
	if _, err := m.client.streams.Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx); err != nil {
		return Cost{}, err
	}
	bytesBefore, err := m.allocated(ctx)
	if err != nil {
		return Cost{}, err
	}
	cpuBefore, err := m.cpu()
	if err != nil {
		return Cost{}, err
	}
	if err := m.client.each(ctx, m.Objects, write); err != nil {
		return Cost{}, err
	}
	sleep(ctx, settle)
	cpu, err := m.cpu()
	if err != nil {
		return Cost{}, err
	}
	allocated, err := m.allocated(ctx)
	return Cost{
		CPUMs:        1000 * (cpu - cpuBefore) / float64(m.Objects),
		AllocatedKiB: (allocated - bytesBefore) / 1024 / float64(m.Objects),
	}, err
}

// allocated is what the API server has ever allocated, in bytes.
func (m *costMeasurement) allocated(ctx context.Context) (float64, error) {
	raw, err := m.client.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	const name = "go_memstats_alloc_bytes_total"
	samples, err := parseMetrics(bytes.NewReader(raw), name)
	if err != nil {
		return 0, err
	}
	if len(samples[name]) != 1 {
		return 0, fmt.Errorf("the API server does not export %s", name)
	}
	return float64(samples[name][0].Value), nil
}

// cpu is the processor time of the API server in seconds, to the nanosecond: its clock ticks are too long.
func (m *costMeasurement) cpu() (seconds float64, err error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", m.cp.PID(controlplane.APIServer)))
	if err != nil {
		return 0, err
	}
	for _, task := range tasks {
		line, err := os.ReadFile(task)
		if err != nil {
			continue // a thread that has ended
		}
		ran, _, _ := strings.Cut(string(line), " ")
		seconds += float64(atoi(ran)) / float64(time.Second)
	}
	return seconds, nil
}

// Print writes the table.
func (c *WriteCosts) Print(out io.Writer) {
	fmt.Fprintf(out, "API server per write: processor time without garbage collection, and memory allocated; "+
		"medians of %d rounds of %d units, %d watchers, load %s\n\n",
		c.Rounds, c.Objects, c.Watchers, strings.Join(c.Load, " to "))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table,
		"variant\tcreate, ms\tadmit, ms\tfinish, ms\tcreate, KiB\tadmit, KiB\tfinish, KiB\tbytes of the unit\t")
	for i := range c.Variants {
		v := &c.Variants[i]
		s := &v.Steps
		fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%d\t\n", v.Name,
			s[0].CPUMs, s[1].CPUMs, s[2].CPUMs, s[0].AllocatedKiB, s[1].AllocatedKiB, s[2].AllocatedKiB, v.ObjectBytes)
	}
	_ = table.Flush()
}
