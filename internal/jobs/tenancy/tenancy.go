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

// Package tenancy writes the policies of tenancy for a kind of jobs. They bound quota, queue, priority, nodes,
// schedulers and the deletion of pods, as manifests/components/tenancy does for batch Jobs.
package tenancy

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
)

// most elements that a list, or a map, of a job may have. The cost of CEL grows with the square of the length. With ten
// thousand groups of pods, which fit into an object, a request took the API server twenty seconds.
const most = 500

// mostAsked is of how many quotas a policy asks for the rights: those of a list, and those above them. Two questions
// for each are what a policy may cost.
const mostAsked = 12

//go:embed policies.yaml.tmpl
var text string

var policies = template.Must(template.New("policies").Parse(text))

// view is what the template sees.
type view struct {
	Kind *jobkind.Kind
	// Name tells the policies from those of other kinds, and What from each other.
	Name, What string
	Actions    Actions
	// Makes lists the resources that are made of a job.
	Makes string
	// QuotaKeys is a list in CEL; the other keys are texts.
	QuotaKeys                         string
	QueueKey, PriorityKey, HighestKey string
	// Above numbers the quotas above the one that a job names.
	Above []int
	// Asked numbers the quotas whose rights are asked about for a list.
	Asked                     []int
	ManagedKey, GangGroupsKey string
	// Most elements of a list are looked at.
	Most int

	places []jobkind.MetadataPlace
}

// Actions are what the API server does with an object that breaks a policy.
type Actions string

const (
	// Deny refuses the object.
	Deny Actions = "[Deny]"
	// Warn warns the client, and adds an audit annotation.
	Warn Actions = "[Warn, Audit]"
)

// Manifest is YAML of the policies for the kind and their bindings. name tells them from those of other kinds.
func Manifest(kind *jobkind.Kind, name string, actions Actions) ([]byte, error) {
	v := view{
		Kind: kind, Name: name, Actions: actions,
		QuotaKeys: "['" + strings.Join(v1alpha1.QuotaLabels[:], "', '") + "']",
		QueueKey:  v1alpha1.QueueNameKey, PriorityKey: v1alpha1.AnnotationPriority,
		HighestKey: v1alpha1.AnnotationMaxPriority,
		ManagedKey: v1alpha1.LabelManaged, GangGroupsKey: extension.AnnotationGangGroups,
		Most: most, places: kind.MetadataPlaces(),
	}
	for i := range quotapath.MostAbove {
		v.Above = append(v.Above, i)
	}
	for i := range mostAsked {
		v.Asked = append(v.Asked, i)
	}
	for _, child := range kind.Children {
		v.Makes += child.GVR.Resource + ", "
	}
	v.Makes += "pods"
	var out bytes.Buffer
	if err := policies.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("policies of %s: %w", kind, err)
	}
	return out.Bytes(), nil
}

// As is the same for one of the policies.
func (v view) As(what string) view {
	v.What = what
	return v
}

// Lists are those that the job itself has places in.
func (v view) Lists() (lists []string) {
	for _, p := range v.places {
		for _, path := range []jobkind.Path{p.Labels, p.Annotations} {
			if i := slices.Index(path, "*"); i >= 0 {
				list := "dyn(" + field("object", path[:i]) + ".orValue([]))"
				lists = append(lists, "size("+list+")")
				if below := path[i+1:]; slices.Contains(below, "*") {
					lists = append(lists, v.lengths(list, below[:slices.Index(below, "*")]))
				}
			}
		}
	}
	slices.Sort(lists)
	return slices.Compact(lists)
}

// lengths is an expression for the sum of the lengths of the lists at this path in all elements of a list. The sum is
// zero if that list is too long itself, so that its elements are not read.
func (v view) lengths(list string, p jobkind.Path) string {
	return fmt.Sprintf("(size(%s) > %d ? 0 :\n%s[%s].map(v, type(v) == map ? v.map(k, v[k]) : v)[0]"+
		".filter(e, type(e) == map)\n%s.map(e, size(dyn(%s.orValue([])))).sum())",
		list, v.Most, indent, list, indent, field("e", p))
}

// Quotas is an expression for two lists: the quotas that the job names, and those that it named before. The last
// element of a path names a quota. Pods get no label by a path, so it is nothing to theirs.
func (v view) Quotas() string {
	lines := linesOf(v.labels(), func(labels string) string {
		return "variables.keys.map(k, " + labels + `[?k].orValue('')).join('\n')`
	})
	if !v.Kind.OfPods() {
		lines = append(lines, linesOf(v.texts(), func(field string) string {
			return "[string(" + field + "[?'" + v1alpha1.QueuePathKey + "'].orValue(''))]\n" +
				indent + ".map(p, p.substring(p.lastIndexOf('.') + 1))[0]"
		})...)
	}
	return v.lists(lines)
}

// Queues is the same of queues.
func (v view) Queues() string {
	return v.names(v.texts(), func(field string) string { return "string(" + field + "[?variables.key].orValue(''))" })
}

// Nodes is the same of nodes; empty where the kind has no templates.
func (v view) Nodes() string { return v.inSpecs("nodeName") }

// Schedulers, Periods and Classes are expressions for the scheduler, the termination grace period and the priority
// class in the specs of pods.
func (v view) Schedulers() string { return v.inSpecs("schedulerName") }

// Periods is described above.
func (v view) Periods() string { return v.inSpecs("terminationGracePeriodSeconds") }

// Classes is described above.
func (v view) Classes() string { return v.inSpecs("priorityClassName") }

// inSpecs is the same of a field of the specs of pods.
func (v view) inSpecs(key string) string {
	var paths []jobkind.Path
	for _, p := range v.places {
		if p.NodeName != nil {
			paths = append(paths, append(slices.Clone(p.NodeName[:len(p.NodeName)-1]), key))
		}
	}
	return v.names(paths, func(field string) string { return "string(" + field + ".orValue(''))" })
}

// Finalizers is the same of those that pods are made with.
func (v view) Finalizers() string {
	var paths []jobkind.Path
	for _, p := range v.places {
		if p.NodeName != nil {
			paths = append(paths, append(slices.Clone(p.Labels[:len(p.Labels)-1]), "finalizers"))
		}
	}
	return v.names(paths, func(field string) string {
		return field + `.orValue([]).map(f, string(f)).join('\n')`
	})
}

// QuotaLists is the same of lists of quotas. Each is one line.
func (v view) QuotaLists() string {
	return v.names(v.annotations(), func(field string) string {
		return "string(" + field + "[?'" + v1alpha1.AnnotationQuotaNames + `'].orValue('')).replace('\n', ' ')`
	})
}

// NamesList is an expression that says whether the job may have a list of quotas.
func (v view) NamesList() string {
	var places []string
	for _, p := range v.annotations() {
		if i := slices.Index(p, "*"); i >= 0 {
			p = p[:i]
			places = append(places, field("object", p)+".hasValue()")
			continue
		}
		places = append(places, field("object", p)+"[?'"+v1alpha1.AnnotationQuotaNames+"'].hasValue()")
	}
	slices.Sort(places)
	return strings.Join(slices.Compact(places), "\n      || ")
}

// GangGroups is the same of groups of gangs. Each is one line, however it was written.
func (v view) GangGroups() string {
	return v.names(v.annotations(), func(field string) string {
		return "string(" + field + "[?'" + v.GangGroupsKey + `'].orValue('')).replace('\n', ' ')`
	})
}

func (v view) texts() []jobkind.Path {
	return append(v.labels(), v.annotations()...)
}

func (v view) annotations() (paths []jobkind.Path) {
	for _, p := range v.places {
		paths = append(paths, p.Annotations)
	}
	return paths
}

func (v view) labels() (paths []jobkind.Path) {
	for _, p := range v.places {
		paths = append(paths, p.Labels)
	}
	return paths
}

const indent = "      "

// names are the values that read finds at the paths that are not nil, in the new and the old job. CEL cannot flatten a
// list of lists, so the values are joined to one text, a line each, and split again.
func (v view) names(paths []jobkind.Path, read func(field string) string) string {
	return v.lists(linesOf(paths, read))
}

// linesOf are expressions for a text, one for each path.
func linesOf(paths []jobkind.Path, read func(field string) string) (lines []string) {
	for _, p := range paths {
		if p != nil {
			lines = append(lines, indent+each("job", p, 1, read))
		}
	}
	return lines
}

// lists that such expressions make.
func (v view) lists(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	first := indent
	if len(v.Lists()) > 0 {
		first += "!variables.small ? [[], []] :\n" + indent
	}
	return first + "[[object], oldObject == null ? [] : [oldObject]].map(versions, versions.map(job, [\n" +
		strings.Join(lines, ",\n") + "\n" + indent + `].join('\n')).join('\n').split('\n'))`
}

// each is one text of what read makes of the fields that the path leads to. A star is every value of a map, and every
// element of a list, that is an object.
func each(object string, p jobkind.Path, depth int, read func(field string) string) string {
	i := slices.Index(p, "*")
	if i < 0 {
		return read(field(object, p))
	}
	element := fmt.Sprintf("e%d", depth)
	return "[dyn(" + field(object, p[:i]) + ".orValue([]))]\n" +
		indent + ".map(v, type(v) == map ? v.map(k, v[k]) : v)[0].filter(e, type(e) == map)\n" +
		indent + ".map(" + element + ", " + each(element, p[i+1:], depth+1, read) + `).join('\n')`
}

// identifier is what may stand behind a dot in CEL.
var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// field is one that may be missing, as may all on the way.
func field(object string, p jobkind.Path) string {
	var b strings.Builder
	b.WriteString(object)
	for i, key := range p {
		switch {
		case !identifier.MatchString(key) || slices.Contains([]string{"in", "true", "false", "null"}, key):
			b.WriteString("[?'" + key + "']")
		case i == 0:
			b.WriteString(".?" + key)
		default:
			b.WriteString("." + key)
		}
	}
	return b.String()
}
