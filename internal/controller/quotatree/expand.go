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

package quotatree

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/quotaname"
)

// Labels and annotations of ElasticQuotas that Koordinator reads.
const (
	koordinatorPrefix = "quota.scheduling.koordinator.sh/"

	labelIsParent         = koordinatorPrefix + "is-parent"
	labelAllowLent        = koordinatorPrefix + "allow-lent-resource"
	labelAllowForceUpdate = koordinatorPrefix + "allow-force-update"
	annotationNamespaces  = koordinatorPrefix + "namespaces"
	annotationWeight      = koordinatorPrefix + "shared-weight"
	annotationStrict      = koordinatorPrefix + "max-strict-check-resource-keys"

	rootQuota = "koordinator-root-quota"
)

// Labels and annotations of ElasticQuotas that are made of a tree.
const (
	// LabelTree names the tree that an ElasticQuota was made of, in its own namespace.
	LabelTree = "koord-queue/quota-tree"
	// annotationNode is the path of the node in its tree.
	annotationNode = "koord-queue/quota-fullname"
	// annotationCarried lists the labels and annotations that come from attributes of the node, so that they go with them.
	annotationCarried = "koord-queue/quota-tree-attributes"
)

// Reasons of problems.
const (
	reasonInvalidName       = "InvalidName"
	reasonNameTaken         = "NameTaken"
	reasonInvalidAmount     = "InvalidAmount"
	reasonMinAboveMax       = "MinAboveMax"
	reasonMinAboveParent    = "MinAboveParent"
	reasonMaxNotInParent    = "MaxNotInParent"
	reasonNamespaceTaken    = "NamespaceTaken"
	reasonNamespaceOnParent = "NamespaceOnParent"
	reasonLendLimit         = "LendLimitInPart"
	reasonInvalidAttribute  = "InvalidAttribute"
)

// Quota is one ElasticQuota that a tree asks for.
type Quota struct {
	// Node is the path of the node in the tree.
	Node string
	// Name of the ElasticQuota, and of the one above it.
	Name, Parent        string
	Labels, Annotations map[string]string
	Min, Max            corev1.ResourceList
	// Namespaces that belong to it.
	Namespaces []string
}

// Problem is something about a node that a person should know.
type Problem struct {
	Node, Reason, Message string
	// Parked: the node, and all below it, have no ElasticQuota for it, or not the one that they ask for.
	Parked bool
}

// Expansion is what a tree asks for.
type Expansion struct {
	// Quotas, parents before their children.
	Quotas []Quota
	// Keep names the quotas of nodes that are parked: what exists of them stays as it is.
	Keep     sets.Set[string]
	Problems []Problem
	// Nodes is the number of nodes of the tree.
	Nodes int
}

// Expand computes the ElasticQuotas of a tree.
//
// An ElasticQuota has the name of its node, because jobs name their quota by it. The name is in lower case, with '-'
// for every character that an object's name cannot have. A hash replaces the end of a name that is longer than a label
// can be. If two nodes get the same name, the first in the tree has it, and the other is parked.
func Expand(tree *v1beta1.ElasticQuotaTree) Expansion {
	x := &expander{
		out: Expansion{Keep: sets.New[string]()}, tree: tree,
		names: map[string]string{}, namespaces: map[string]string{},
	}
	if tree.Spec.Root.Name != "" || len(tree.Spec.Root.Children) > 0 {
		x.node(&tree.Spec.Root, above{quota: rootQuota})
	}
	return x.out
}

type expander struct {
	out  Expansion
	tree *v1beta1.ElasticQuotaTree
	// names and namespaces that are taken, and by which node.
	names, namespaces map[string]string
}

func (x *expander) problem(parked bool, node, reason, format string, args ...any) {
	x.out.Problems = append(x.out.Problems,
		Problem{Node: node, Reason: reason, Message: fmt.Sprintf(format, args...), Parked: parked})
}

// above is the context of a node: path, quota and max of its parent, and the rest of the parent's min. The root of the
// tree has only a path.
type above struct {
	path, quota string
	max, left   corev1.ResourceList
}

// node adds a node and all below it.
func (x *expander) node(n *v1beta1.ElasticQuotaNode, up above) {
	path := n.Name
	if up.path != "" {
		path = up.path + "/" + n.Name
	}
	q := Quota{Node: path, Name: quotaname.Of(n.Name), Parent: up.quota}
	if !x.takeName(&q, n) || !x.amounts(&q, n, up.max) || !x.takeMin(&q, up.left) {
		x.park(n)
		return
	}
	q.Labels = map[string]string{
		v1alpha1.LabelCreatedBy:   v1alpha1.CreatedByController,
		LabelTree:                 x.tree.Name,
		v1alpha1.LabelQuotaParent: up.quota,
		labelIsParent:             strconv.FormatBool(len(n.Children) > 0),
		// Koordinator's webhook compares sums of min at every write. On the way from one tree to another the sums can be
		// wrong, for instance if a level is inserted. Then no order of writes would be accepted.
		labelAllowForceUpdate: "true",
	}
	q.Annotations = map[string]string{annotationNode: path, annotationWeight: encode(q.Max)}
	if policy := x.tree.Labels[v1alpha1.LabelQueuePolicy]; policy != "" {
		q.Labels[v1alpha1.LabelQueuePolicy] = policy
	}
	x.attributes(&q, n)
	x.maxJobs(&q, n)
	x.takeNamespaces(&q, n)
	x.out.Nodes++
	x.out.Quotas = append(x.out.Quotas, q)
	below := above{path: path, quota: q.Name, max: q.Max, left: q.Min.DeepCopy()}
	for i := range n.Children {
		x.node(&n.Children[i], below)
	}
}

// takeMin takes the min of a node from the rest of its parent's min. Koordinator wants the mins of children to be at
// most that of their parent.
func (x *expander) takeMin(q *Quota, left corev1.ResourceList) bool {
	if q.Parent == rootQuota {
		return true
	}
	for _, name := range sets.List(sets.KeySet(q.Min)) {
		amount, has := q.Min[name], left[name]
		if amount.Cmp(has) > 0 {
			x.problem(true, q.Node, reasonMinAboveParent, "%s: min %s is above what is left of the min of the node above, %s",
				name, amount.String(), has.String())
			return false
		}
	}
	for name, amount := range q.Min {
		has := left[name]
		has.Sub(amount)
		left[name] = has
	}
	return true
}

// park keeps what exists of a node and of all below it.
func (x *expander) park(n *v1beta1.ElasticQuotaNode) {
	x.out.Nodes++
	if name := quotaname.Of(n.Name); name != "" {
		x.out.Keep.Insert(name)
	}
	for i := range n.Children {
		x.park(&n.Children[i])
	}
}

func (x *expander) takeName(q *Quota, n *v1beta1.ElasticQuotaNode) bool {
	switch {
	case q.Name == "" || len(utilvalidation.IsDNS1123Subdomain(q.Name)) > 0:
		x.problem(true, q.Node, reasonInvalidName, "%q cannot be made the name of an ElasticQuota", n.Name)
		return false
	case strings.HasPrefix(q.Name, quotaname.BuiltInPrefix):
		x.problem(true, q.Node, reasonInvalidName, "names that begin with %q are Koordinator's own", quotaname.BuiltInPrefix)
		return false
	case x.names[q.Name] != "":
		x.problem(true, q.Node, reasonNameTaken,
			"node %s of the tree has the name %q already; names are unique in the whole tree",
			x.names[q.Name], q.Name)
		return false
	}
	x.names[q.Name] = q.Node
	return true
}

// amounts reads min and max. Koordinator masks the use of a quota by the names in its max, for the levels above too.
// Its webhook wants the same names in the max of parent and child. So a resource that a node does not limit gets the
// limit of the node above, which holds anyway.
func (x *expander) amounts(q *Quota, n *v1beta1.ElasticQuotaNode, limits corev1.ResourceList) bool {
	q.Max, q.Min = corev1.ResourceList{}, corev1.ResourceList{}
	var above []string
	for _, name := range sets.List(sets.KeySet(n.Max)) {
		amount := n.Max[name]
		if amount.Sign() < 0 {
			x.problem(true, q.Node, reasonInvalidAmount, "max of %s is negative: %s", name, amount.String())
			return false
		}
		if isMaxJobs(name) {
			continue
		}
		q.Max[name] = amount
		if _, ok := limits[name]; !ok && limits != nil {
			above = append(above, string(name))
		}
	}
	for name, amount := range limits {
		if _, ok := q.Max[name]; !ok {
			q.Max[name] = amount
		}
	}
	for _, name := range sets.List(sets.KeySet(n.Min)) {
		amount := n.Min[name]
		if amount.Sign() < 0 {
			x.problem(true, q.Node, reasonInvalidAmount, "min of %s is negative: %s", name, amount.String())
			return false
		}
		if isMaxJobs(name) {
			continue
		}
		if most, ok := q.Max[name]; ok && most.Cmp(amount) < 0 {
			x.problem(true, q.Node, reasonMinAboveMax, "%s: min %s is above max %s", name, amount.String(), most.String())
			return false
		}
		q.Min[name] = amount
	}
	if len(above) > 0 {
		x.problem(false, q.Node, reasonMaxNotInParent,
			"max names %s and that of the node above does not; Koordinator's webhook refuses that", strings.Join(above, ", "))
	}
	return true
}

func isMaxJobs(name corev1.ResourceName) bool {
	return name == v1beta1.ResourceMaxJobs || name == v1beta1.ResourceMaxJobsFormer
}

// maxJobs writes the number of jobs that max says into an annotation: as a resource, Koordinator's webhook would want
// it in every other node too.
func (x *expander) maxJobs(q *Quota, n *v1beta1.ElasticQuotaNode) {
	least := int64(math.MaxInt64)
	for name, amount := range n.Max {
		// An amount beyond int64 is no limit.
		if isMaxJobs(name) && amount.CmpInt64(least) < 0 {
			least = amount.Value()
		}
	}
	if least != math.MaxInt64 {
		q.Annotations[v1alpha1.AnnotationMaxJobs] = strconv.FormatInt(least, 10)
	}
}

func (x *expander) takeNamespaces(q *Quota, n *v1beta1.ElasticQuotaNode) {
	if len(n.Namespaces) == 0 {
		return
	}
	if len(n.Children) > 0 {
		x.problem(false, q.Node, reasonNamespaceOnParent,
			"namespaces of a node with children are not used: jobs belong to leaves")
		return
	}
	for _, name := range n.Namespaces {
		switch owner := x.namespaces[name]; {
		case name == "" || owner == q.Node:
		case owner != "":
			x.problem(false, q.Node, reasonNamespaceTaken, "namespace %q belongs to node %s", name, owner)
		default:
			x.namespaces[name] = q.Node
			q.Namespaces = append(q.Namespaces, name)
		}
	}
}

// attributes become labels where something reads them as labels, and annotations otherwise.
func (x *expander) attributes(q *Quota, n *v1beta1.ElasticQuotaNode) {
	var carried []string
	for _, key := range sets.List(sets.KeySet(n.Attributes)) {
		value := n.Attributes[key]
		switch key {
		case v1alpha1.LabelQueuePolicy, labelAllowLent, labelAllowForceUpdate:
			if problems := utilvalidation.IsValidLabelValue(value); len(problems) > 0 {
				x.problem(false, q.Node, reasonInvalidAttribute, "attribute %s: %q cannot be the value of a label", key, value)
				continue
			}
			q.Labels[key] = value
		case annotationWeight:
			weight, err := sharedWeight(value, q.Max)
			if err != nil {
				x.problem(false, q.Node, reasonInvalidAttribute, "attribute %s is ignored: %v", key, err)
				continue
			}
			q.Annotations[key] = weight
		case annotationStrict:
			q.Annotations[key] = value
		default:
			if reason := notCarried(key); reason != "" {
				x.problem(false, q.Node, reasonInvalidAttribute, "attribute %q is not carried over: %s", key, reason)
				continue
			}
			q.Annotations[key] = value
		}
		carried = append(carried, key)
	}
	if value, ok := n.Attributes[v1beta1.AttributeLendLimit]; ok && q.Labels[labelAllowLent] == "" {
		if x.lendLimit(q, value) {
			q.Labels[labelAllowLent] = "false"
		}
	}
	if len(carried) > 0 {
		q.Annotations[annotationCarried] = strings.Join(carried, ",")
	}
}

// sharedWeight names what max names and nothing else, as Koordinator's webhook would make it.
func sharedWeight(value string, max corev1.ResourceList) (string, error) {
	given, err := parseAmounts(value)
	if err != nil {
		return "", err
	}
	weight := corev1.ResourceList{}
	for name, amount := range max {
		if w, ok := given[name]; ok {
			amount = w
		}
		weight[name] = amount
	}
	return encode(weight), nil
}

// notCarried says why an attribute cannot be an annotation of an ElasticQuota.
func notCarried(key string) string {
	if problems := utilvalidation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
		return "no annotation can have this name"
	}
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case strings.HasPrefix(key, koordinatorPrefix):
		return "it follows from the tree"
	case key == annotationNode, key == annotationCarried, key == LabelTree, key == v1alpha1.LabelCreatedBy:
		return "it follows from the tree"
	case strings.Contains(key, "/") && (domain == "kubernetes.io" || domain == "k8s.io" ||
		strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io")):
		return "its prefix belongs to Kubernetes"
	}
	return ""
}

// lendLimit says whether nothing may be lent. Koordinator lends all that is not used of min, or nothing; a limit in
// between is kept by lending nothing. A resource that the limit does not name is not lent.
func (x *expander) lendLimit(q *Quota, value string) bool {
	limit, err := parseAmounts(value)
	if err != nil {
		x.problem(false, q.Node, reasonInvalidAttribute, "attribute %s is ignored: %v", v1beta1.AttributeLendLimit, err)
		return false
	}
	all, none := true, true
	for name, guaranteed := range q.Min {
		lent := limit[name]
		all = all && lent.Cmp(guaranteed) >= 0
		none = none && lent.Sign() <= 0
	}
	if !all && !none {
		x.problem(false, q.Node, reasonLendLimit,
			"%s lends a part of min; Koordinator lends all of it or nothing, so nothing is lent", v1beta1.AttributeLendLimit)
	}
	return !all
}

func encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(raw)
}
