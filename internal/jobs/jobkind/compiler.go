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

package jobkind

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
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
	p := PathOf(text)
	for _, key := range p {
		switch {
		case !segment.MatchString(key):
			c.invalid(at, text, fmt.Sprintf("%q is no name of a field", key))
		case key == Star && !stars:
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

func (c *compiler) expression(at *field.Path, text string, want *cel.Type) *Expression {
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
		k.Sets = append(k.Sets, c.podSet(root.Child("podSets").Index(i), &d.PodSets[i]))
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
		k.Gang = &Gang{
			When:    c.expression(at.Child("when"), g.When, cel.BoolType),
			Unless:  c.expression(at.Child("unless"), g.Unless, cel.BoolType),
			Minimum: c.counts(at.Child("minimum"), g.Minimum),
		}
	}
	for i, text := range d.PriorityClass {
		k.PriorityClass = append(k.PriorityClass, c.path(root.Child("priorityClass").Index(i), text, false))
	}
	if m := d.ManagedBy; m != nil {
		c.required(root.Child("managedBy", "field"), m.Field)
		k.ManagedBy, k.OwnControllers = c.path(root.Child("managedBy", "field"), m.Field, false), m.Own
	}
	c.state(root.Child("state"), &d.State, k)
	k.StartTime = c.written(root.Child("startTime"), d.StartTime, "status")
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
	k.SuspendField = c.written(at.Child("field"), s.Field, "spec")
	if s.Annotation != "" {
		for _, problem := range validation.IsQualifiedName(s.Annotation) {
			c.invalid(at.Child("annotation"), s.Annotation, problem)
		}
	}
	k.SuspendAnnotation, k.keepsPods = s.Annotation, s.KeepsPods
	k.SuspendUnless = c.expression(at.Child("unless"), s.Unless, cel.BoolType)
}

func (c *compiler) valid(at *field.Path, rules []ValidRule, k *Kind) {
	for i, r := range rules {
		c.required(at.Index(i).Child("rule"), r.Rule)
		c.required(at.Index(i).Child("message"), r.Message)
		k.Valid = append(k.Valid, Valid{
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
	k.Succeeded = c.expression(at.Child("succeeded"), s.Succeeded, cel.BoolType)
	k.Failed = c.expression(at.Child("failed"), s.Failed, cel.BoolType)
	k.Message = c.expression(at.Child("message"), s.Message, cel.StringType)
	k.SuspensionSeen = c.expression(at.Child("suspended"), s.Suspended, cel.BoolType)
	k.Ready = c.expression(at.Child("ready"), s.Ready, cel.IntType)
	k.Completed = c.expression(at.Child("completed"), s.Completed, cel.IntType)
	k.All = c.expression(at.Child("all"), s.All, cel.IntType)
	counts := cel.ListType(cel.MapType(cel.StringType, cel.DynType))
	k.Reclaimable = c.expression(at.Child("reclaimable"), s.Reclaimable, counts)
	k.ReadyBySet = c.expression(at.Child("readyBySet"), s.ReadyBySet, counts)
	k.Active = c.expression(at.Child("active"), s.Active, cel.IntType)
	k.Started = c.expression(at.Child("started"), s.Started, cel.BoolType)
	k.Running = c.expression(at.Child("running"), s.Running, cel.BoolType)
}

func (c *compiler) pods(at *field.Path, p *PodsRule, k *Kind) {
	k.Pods.Selector = c.path(at.Child("selector"), p.Selector, false)
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
		k.Pods.ByName = true
	case strings.HasPrefix(p.Value, "."):
		k.Pods.Value = c.path(at.Child("value"), p.Value, false)
	default:
		c.invalid(at.Child("value"), p.Value, "it is none of UID, Name, and the path of a field")
	}
	k.Pods.Label = p.Label
}

// podSet checks a rule field by field; what it describes podset.Of says.
func (c *compiler) podSet(at *field.Path, r *PodSetRule) Set {
	s := podset.Of(r, c.condition)
	c.expression(at.Child("when"), r.When, cel.BoolType)
	c.path(at.Child("path"), r.Path, true)
	if r.Name != "" && (s.Stars || r.NameField != "") {
		c.invalid(at.Child("name"), r.Name, "several pod sets cannot have one name, and none has two")
	}
	if r.Name != "" {
		for _, problem := range validation.IsDNS1123Label(r.Name) {
			c.invalid(at.Child("name"), r.Name, problem)
		}
	}
	c.path(at.Child("nameField"), r.NameField, false)
	c.template(at, r, &s)
	for i := range r.Adds {
		c.add(at.Child("adds").Index(i), &r.Adds[i])
	}
	if len(r.Count) == 0 {
		c.errs = append(c.errs, field.Required(at.Child("count"), ""))
	}
	c.counts(at.Child("count"), r.Count)
	c.counts(at.Child("minCount"), r.MinCount)
	c.partial(at.Child("partial"), r.Partial, &s)
	c.expression(at.Child("later"), r.Later, cel.BoolType)
	return s
}

// condition compiles the text without a word about mistakes, which the checks tell.
func (c *compiler) condition(text string) *Condition {
	if text == "" {
		return nil
	}
	e, err := c.compile(text, cel.BoolType)
	if err != nil {
		return nil
	}
	return podset.NewCondition(e.Holds, e.Reads...)
}

// CompileCondition reads an expression that is true or false; an empty text gives nil.
func CompileCondition(text string) (*Condition, error) {
	x, err := sharedExpressions()
	if err != nil || text == "" {
		return nil, err
	}
	e, err := x.compile(text, cel.BoolType)
	if err != nil {
		return nil, err
	}
	return podset.NewCondition(e.Holds, e.Reads...), nil
}

func (c *compiler) partial(at *field.Path, r *PartialRule, s *Set) {
	if r == nil {
		return
	}
	c.expression(at.Child("when"), r.When, cel.BoolType)
	c.expression(at.Child("unless"), r.Unless, cel.BoolType)
	c.expression(at.Child("alongWhen"), r.AlongWhen, cel.BoolType)
	c.counts(at.Child("minCount"), r.MinCount)
	if len(s.Partial.Least)+len(r.Annotations) == 0 {
		c.errs = append(c.errs, field.Required(at.Child("minCount"), "or annotations"))
	}
	for i, key := range r.Annotations {
		for _, problem := range validation.IsQualifiedName(key) {
			c.invalid(at.Child("annotations").Index(i), key, problem)
		}
	}
	c.required(at.Child("field"), r.Field)
	c.source(at.Child("field"), r.Field)
	c.source(at.Child("each"), r.Each)
	c.source(at.Child("along"), r.Along)
	c.writable(at.Child("field"), s, s.Partial.Field)
	c.writable(at.Child("along"), s, s.Partial.Along)
}

// template checks where the template of the pods is, and where their labels and annotations are written.
func (c *compiler) template(at *field.Path, r *PodSetRule, s *Set) {
	c.pointer(at, r)
	if len(r.Template) == 0 && r.Computed == "" && r.TemplateField == "" {
		c.errs = append(c.errs, field.Required(at.Child("template"), "or computed"))
	}
	for _, text := range r.Template {
		p := c.path(at.Child("template"), text, false)
		if whole := append(s.Path.Child(), p...); len(whole) > 0 && whole[0] != "spec" && whole[0] != ChildKey {
			c.invalid(at.Child("template"), whole.String(), "it has to be below .spec, or in the child")
		}
	}
	if r.Computed != "" && s.Computed == nil {
		known := slices.Sorted(maps.Keys(podset.ComputedTemplates))
		c.errs = append(c.errs, field.NotSupported(at.Child("computed"), r.Computed, known))
	}
	c.source(at.Child("labels"), r.Labels)
	c.source(at.Child("annotations"), r.Annotations)
	c.source(at.Child("schedulerName"), r.SchedulerName)
	if !r.Early { // else nothing is written there
		c.writable(at.Child("labels"), s, s.Labels)
		c.writable(at.Child("annotations"), s, s.Annotations)
	}
	c.writable(at.Child("schedulerName"), s, s.SchedulerName)
}

// pointer checks where the path of the template is, and where that begins.
func (c *compiler) pointer(at *field.Path, r *PodSetRule) {
	if r.TemplateField == "" && r.TemplateFrom == "" {
		return
	}
	c.required(at.Child("templateField"), r.TemplateField)
	c.path(at.Child("templateField"), r.TemplateField, false)
	if len(r.Template) > 0 || r.Computed != "" {
		c.invalid(at.Child("templateField"), r.TemplateField, "it stands in place of template and computed")
	}
	if !strings.HasPrefix(r.TemplateFrom, ".spec.") || !strings.HasPrefix(r.Path, r.TemplateFrom+".") {
		c.invalid(at.Child("templateFrom"), r.TemplateFrom, "it is no beginning of path below .spec")
	}
}

// writable: what pods are given is written below spec, and nowhere else.
func (c *compiler) writable(at *field.Path, s *Set, to Source) {
	whole := to.Path
	if len(whole) > 0 && !to.OfJob {
		whole = append(s.Path.Child(), to.Path...)
	}
	if len(whole) > 0 && whole[0] != "spec" {
		c.invalid(at, whole.String(), "it has to be below .spec")
	}
}

func (c *compiler) add(at *field.Path, r *AddRule) {
	c.expression(at.Child("when"), r.When, cel.BoolType)
	c.source(at.Child("resources"), r.Resources)
	c.containers(at.Child("initContainers"), r.InitContainers)
	c.containers(at.Child("containers"), r.Containers)
}

func (c *compiler) containers(at *field.Path, list []map[string]any) {
	for i := range list {
		text, err := yaml.Marshal(list[i])
		if err == nil {
			err = yaml.UnmarshalStrict(text, &corev1.Container{})
		}
		if err != nil {
			c.invalid(at.Index(i), "", err.Error())
		}
	}
}

func (c *compiler) counts(at *field.Path, rules []CountRule) []Term {
	for i := range rules {
		c.count(at.Index(i), &rules[i])
	}
	return podset.TermsOf(rules)
}

func (c *compiler) count(at *field.Path, r *CountRule) {
	if r.Computed != "" {
		c.computedCount(at, r)
	} else if r.Field == "" && len(r.Least) == 0 && r.Default == nil || r.Field != "" && len(r.Least) > 0 {
		c.invalid(at, "", "it has either field, or least, or a default alone")
	}
	if r.Default != nil && *r.Default < 0 {
		c.invalid(at.Child("default"), *r.Default, "must not be negative")
	}
	c.source(at.Child("field"), r.Field)
	c.source(at.Child("less"), r.Less)
	c.source(at.Child("lessIndexes"), r.LessIndexes)
	for i, text := range r.AtLeast {
		c.source(at.Child("atLeast").Index(i), text)
	}
	for i := range r.Least {
		if len(r.Least[i].Least) > 0 {
			c.invalid(at.Child("least").Index(i), "", "the least of the least is the least")
			continue
		}
		c.count(at.Child("least").Index(i), &r.Least[i])
	}
}

// computedCount wants code that exists, and nothing that stands in its place.
func (c *compiler) computedCount(at *field.Path, r *CountRule) {
	if _, known := podset.ComputedCounts[r.Computed]; !known {
		names := slices.Sorted(maps.Keys(podset.ComputedCounts))
		c.errs = append(c.errs, field.NotSupported(at.Child("computed"), r.Computed, names))
	}
	alone := CountRule{Computed: r.Computed}
	if !reflect.DeepEqual(*r, alone) {
		c.invalid(at.Child("computed"), r.Computed, "it stands alone")
	}
}

// source checks a path that may begin at the job.
func (c *compiler) source(at *field.Path, text string) {
	c.path(at, strings.TrimPrefix(text, "$"), false)
}
