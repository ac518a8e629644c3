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

package jobs

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// compiler notes every mistake of a descriptor.
type compiler struct {
	*expressions
	errs field.ErrorList
}

func (c *compiler) invalid(at *field.Path, value any, why string) {
	c.errs = append(c.errs, field.Invalid(at, value, why))
}

func (c *compiler) required(at *field.Path, value string) {
	if value == "" {
		c.errs = append(c.errs, field.Required(at, ""))
	}
}

var segment = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*|\*)$`)

// path reads one; stars says whether it may have any.
func (c *compiler) path(at *field.Path, text string, stars bool) Path {
	if text == "" {
		return nil
	}
	if !strings.HasPrefix(text, ".") {
		c.invalid(at, text, `a path begins with "."`)
		return nil
	}
	p := path(text)
	for _, key := range p {
		switch {
		case !segment.MatchString(key):
			c.invalid(at, text, fmt.Sprintf("%q is no name of a field", key))
		case key == star && !stars:
			c.invalid(at, text, "it leads to one field, so it has no stars")
		}
	}
	return p
}

// written reads the path of a field that is written: below spec, or the start time.
func (c *compiler) written(at *field.Path, text, below string) Path {
	p := c.path(at, text, false)
	if len(p) > 0 && p[0] != below {
		c.invalid(at, text, "it has to be below ."+below)
	}
	return p
}

func (c *compiler) expression(at *field.Path, text string, want *cel.Type) *expression {
	if text == "" {
		return nil
	}
	e, err := c.compile(text, want)
	if err != nil {
		c.invalid(at, text, err.Error())
	}
	return e
}

func (c *compiler) kind(d *Descriptor) *Kind {
	root := field.NewPath("")
	own := c.object(root, ObjectKind{APIVersion: d.APIVersion, Kind: d.Kind, Resource: d.Resource})
	k := &Kind{GVK: own.GVK, GVR: own.GVR, UnitSuffix: strings.ToLower(d.Kind)}
	if d.UnitSuffix != nil {
		k.UnitSuffix = *d.UnitSuffix
	}
	if k.UnitSuffix != "" {
		for _, problem := range validation.IsDNS1123Label(k.UnitSuffix) {
			c.invalid(root.Child("unitSuffix"), k.UnitSuffix, problem)
		}
	}
	c.suspend(root.Child("suspend"), d.Suspend, k)
	c.valid(root.Child("valid"), d.Valid, k)
	c.children(root, d, k)
	if len(d.PodSets) == 0 {
		c.errs = append(c.errs, field.Required(root.Child("podSets"), ""))
	}
	for i := range d.PodSets {
		k.sets = append(k.sets, c.podSet(root.Child("podSets").Index(i), &d.PodSets[i]))
	}
	for i, text := range d.PodMetadata {
		at := root.Child("podMetadata").Index(i)
		p := c.path(at, text, true)
		if len(p) == 0 || p[0] != "spec" {
			c.invalid(at, text, "it has to be .spec, or below")
		}
		k.podMetadata = append(k.podMetadata, p)
	}
	if g := d.Gang; g != nil {
		at := root.Child("gang")
		k.gang = &gangRule{
			when:    c.expression(at.Child("when"), g.When, cel.BoolType),
			unless:  c.expression(at.Child("unless"), g.Unless, cel.BoolType),
			minimum: c.counts(at.Child("minimum"), g.Minimum),
		}
	}
	for i, text := range d.PriorityClass {
		k.priorityClass = append(k.priorityClass, c.path(root.Child("priorityClass").Index(i), text, false))
	}
	if m := d.ManagedBy; m != nil {
		c.required(root.Child("managedBy", "field"), m.Field)
		k.managedBy, k.ownControllers = c.path(root.Child("managedBy", "field"), m.Field, false), m.Own
	}
	c.state(root.Child("state"), &d.State, k)
	k.startTime = c.written(root.Child("startTime"), d.StartTime, "status")
	c.pods(root.Child("pods"), &d.Pods, k)
	return k
}

func (c *compiler) object(at *field.Path, o ObjectKind) Object {
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil || gv.Version == "" {
		c.invalid(at.Child("apiVersion"), o.APIVersion, "want GROUP/VERSION")
	}
	c.required(at.Child("kind"), o.Kind)
	c.required(at.Child("resource"), o.Resource)
	return Object{GVK: gv.WithKind(o.Kind), GVR: gv.WithResource(o.Resource)}
}

func (c *compiler) suspend(at *field.Path, s *SuspendRule, k *Kind) {
	if s == nil {
		return
	}
	if s.Field == "" && s.Annotation == "" {
		c.errs = append(c.errs, field.Required(at, "a field or an annotation"))
	}
	k.suspend = c.written(at.Child("field"), s.Field, "spec")
	if s.Annotation != "" {
		for _, problem := range validation.IsQualifiedName(s.Annotation) {
			c.invalid(at.Child("annotation"), s.Annotation, problem)
		}
	}
	k.suspendAnnotation, k.keepsPods = s.Annotation, s.KeepsPods
}

func (c *compiler) valid(at *field.Path, rules []ValidRule, k *Kind) {
	for i, r := range rules {
		c.required(at.Index(i).Child("rule"), r.Rule)
		c.required(at.Index(i).Child("message"), r.Message)
		k.valid = append(k.valid, validRule{
			c.expression(at.Index(i).Child("rule"), r.Rule, cel.BoolType), r.Message,
		})
	}
}

func (c *compiler) children(root *field.Path, d *Descriptor, k *Kind) {
	for i, child := range d.Children {
		k.Children = append(k.Children, c.object(root.Child("children").Index(i), child))
	}
	if d.Child == nil {
		return
	}
	child := c.object(root.Child("child"), *d.Child)
	if !slices.Contains(k.Children, child) {
		c.invalid(root.Child("child"), d.Child.Kind, "it is none of the children")
	}
	k.Child = &child
}

func (c *compiler) state(at *field.Path, s *StateRules, k *Kind) {
	k.succeeded = c.expression(at.Child("succeeded"), s.Succeeded, cel.BoolType)
	k.failed = c.expression(at.Child("failed"), s.Failed, cel.BoolType)
	k.message = c.expression(at.Child("message"), s.Message, cel.StringType)
	k.suspensionSeen = c.expression(at.Child("suspended"), s.Suspended, cel.BoolType)
	k.ready = c.expression(at.Child("ready"), s.Ready, cel.IntType)
	k.completed = c.expression(at.Child("completed"), s.Completed, cel.IntType)
	k.all = c.expression(at.Child("all"), s.All, cel.IntType)
	counts := cel.ListType(cel.MapType(cel.StringType, cel.DynType))
	k.reclaimable = c.expression(at.Child("reclaimable"), s.Reclaimable, counts)
	k.readyBySet = c.expression(at.Child("readyBySet"), s.ReadyBySet, counts)
	k.active = c.expression(at.Child("active"), s.Active, cel.IntType)
	k.started = c.expression(at.Child("started"), s.Started, cel.BoolType)
	k.running = c.expression(at.Child("running"), s.Running, cel.BoolType)
}

func (c *compiler) pods(at *field.Path, p *PodsRule, k *Kind) {
	k.pods.selector = c.path(at.Child("selector"), p.Selector, false)
	if (p.Label == "") == (p.Selector == "") {
		c.invalid(at, "", "it has either label or selector")
	}
	if p.Label != "" {
		for _, problem := range validation.IsQualifiedName(p.Label) {
			c.invalid(at.Child("label"), p.Label, problem)
		}
	}
	switch {
	case p.Value == "" || p.Value == podsByUID:
	case p.Value == podsByName:
		k.pods.byName = true
	case strings.HasPrefix(p.Value, "."):
		k.pods.value = c.path(at.Child("value"), p.Value, false)
	default:
		c.invalid(at.Child("value"), p.Value, "it is none of UID, Name, and the path of a field")
	}
	k.pods.label = p.Label
}

func (c *compiler) podSet(at *field.Path, r *PodSetRule) podSetRule {
	s := podSetRule{optional: r.Optional, early: r.Early, name: r.Name}
	s.when = c.expression(at.Child("when"), r.When, cel.BoolType)
	s.path = c.path(at.Child("path"), r.Path, true)
	s.stars = len(s.path.fixed()) < len(s.path)
	if r.Name != "" && (s.stars || r.NameField != "") {
		c.invalid(at.Child("name"), r.Name, "several pod sets cannot have one name, and none has two")
	}
	if r.Name != "" {
		for _, problem := range validation.IsDNS1123Label(r.Name) {
			c.invalid(at.Child("name"), r.Name, problem)
		}
	}
	s.nameField = c.path(at.Child("nameField"), r.NameField, false)
	c.template(at, r, &s)
	for i := range r.Adds {
		s.adds = append(s.adds, c.add(at.Child("adds").Index(i), &r.Adds[i]))
	}
	if len(r.Count) == 0 {
		c.errs = append(c.errs, field.Required(at.Child("count"), ""))
	}
	s.count = c.counts(at.Child("count"), r.Count)
	s.minCount = c.counts(at.Child("minCount"), r.MinCount)
	s.partial = c.partial(at.Child("partial"), r.Partial, &s)
	s.later = c.expression(at.Child("later"), r.Later, cel.BoolType)
	return s
}

func (c *compiler) partial(at *field.Path, r *PartialRule, s *podSetRule) *partialRule {
	if r == nil {
		return nil
	}
	p := &partialRule{
		when:   c.expression(at.Child("when"), r.When, cel.BoolType),
		unless: c.expression(at.Child("unless"), r.Unless, cel.BoolType), annotations: r.Annotations,
		least: c.counts(at.Child("minCount"), r.MinCount), field: c.source(at.Child("field"), r.Field),
		each: c.source(at.Child("each"), r.Each), along: c.source(at.Child("along"), r.Along),
		alongWhen: c.expression(at.Child("alongWhen"), r.AlongWhen, cel.BoolType),
	}
	if len(p.least) == 0 {
		p.least = s.minCount
	}
	if len(p.least)+len(p.annotations) == 0 {
		c.errs = append(c.errs, field.Required(at.Child("minCount"), "or annotations"))
	}
	for i, key := range r.Annotations {
		for _, problem := range validation.IsQualifiedName(key) {
			c.invalid(at.Child("annotations").Index(i), key, problem)
		}
	}
	c.required(at.Child("field"), r.Field)
	c.writable(at.Child("field"), s, p.field)
	c.writable(at.Child("along"), s, p.along)
	return p
}

// template reads where the template of the pods is, and where their labels and annotations are written.
func (c *compiler) template(at *field.Path, r *PodSetRule, s *podSetRule) {
	if len(r.Template) == 0 && r.Computed == "" {
		c.errs = append(c.errs, field.Required(at.Child("template"), "or computed"))
	}
	for _, text := range r.Template {
		p := c.path(at.Child("template"), text, false)
		if whole := append(s.path.child(), p...); len(whole) > 0 && whole[0] != "spec" && whole[0] != childKey {
			c.invalid(at.Child("template"), whole.String(), "it has to be below .spec, or in the child")
		}
		s.templates = append(s.templates, p)
	}
	if r.Computed != "" {
		code, ok := computedTemplates[r.Computed]
		if !ok {
			c.errs = append(c.errs, field.NotSupported(at.Child("computed"), r.Computed, slices.Sorted(maps.Keys(computedTemplates))))
		}
		s.computed = &code
	}
	s.labels = c.source(at.Child("labels"), r.Labels)
	s.annotations = c.source(at.Child("annotations"), r.Annotations)
	c.writable(at.Child("labels"), s, s.labels)
	c.writable(at.Child("annotations"), s, s.annotations)
}

// writable: what pods are given is written below spec, and nowhere else.
func (c *compiler) writable(at *field.Path, s *podSetRule, to source) {
	whole := to.path
	if len(whole) > 0 && !to.ofJob {
		whole = append(s.path.child(), to.path...)
	}
	if len(whole) > 0 && whole[0] != "spec" {
		c.invalid(at, whole.String(), "it has to be below .spec")
	}
}

func (c *compiler) add(at *field.Path, r *AddRule) addRule {
	return addRule{
		when:       c.expression(at.Child("when"), r.When, cel.BoolType),
		resources:  c.source(at.Child("resources"), r.Resources),
		init:       c.containers(at.Child("initContainers"), r.InitContainers),
		containers: c.containers(at.Child("containers"), r.Containers),
	}
}

func (c *compiler) containers(at *field.Path, list []corev1.Container) (fields []any) {
	for i := range list {
		one, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i])
		if err != nil {
			c.invalid(at.Index(i), list[i].Name, err.Error())
		}
		fields = append(fields, one)
	}
	return fields
}

func (c *compiler) counts(at *field.Path, rules []CountRule) (terms []countTerm) {
	for i := range rules {
		terms = append(terms, c.count(at.Index(i), &rules[i]))
	}
	return terms
}

func (c *compiler) count(at *field.Path, r *CountRule) countTerm {
	t := countTerm{byDefault: r.Default, lessConstant: r.LessConstant}
	if r.Field == "" && len(r.Least) == 0 && r.Default == nil || r.Field != "" && len(r.Least) > 0 {
		c.invalid(at, "", "it has either field, or least, or a default alone")
	}
	if r.Default != nil && *r.Default < 0 {
		c.invalid(at.Child("default"), *r.Default, "must not be negative")
	}
	t.field = c.source(at.Child("field"), r.Field)
	t.less = c.source(at.Child("less"), r.Less)
	for i := range r.Least {
		if len(r.Least[i].Least) > 0 {
			c.invalid(at.Child("least").Index(i), "", "the least of the least is the least")
			continue
		}
		t.least = append(t.least, c.count(at.Child("least").Index(i), &r.Least[i]))
	}
	return t
}

// source reads a path that may begin at the job.
func (c *compiler) source(at *field.Path, text string) source {
	below, ofJob := strings.CutPrefix(text, "$")
	return source{path: c.path(at, below, false), ofJob: ofJob}
}
