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

package manifests_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// bound is a policy as the API server compiles it, once for each binding.
type bound struct {
	rules                []admissionregistrationv1.NamedRuleWithOperations
	object, ofNamespaces labels.Selector
	validator            validating.Validator
}

// policiesOf compiles those of a directory, and returns the ConfigMap that is their parameter.
func policiesOf(b *testing.B, dir string) (all []bound, params *corev1.ConfigMap) {
	b.Helper()
	policies := map[string]admissionregistrationv1.ValidatingAdmissionPolicy{}
	var bindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding
	for _, r := range build(b, dir).Resources() {
		switch r.GetKind() {
		case "ConfigMap":
			params = ptr.To(decode[corev1.ConfigMap](b, r))
		case "ValidatingAdmissionPolicy":
			policies[r.GetName()] = decode[admissionregistrationv1.ValidatingAdmissionPolicy](b, r)
		case "ValidatingAdmissionPolicyBinding":
			bindings = append(bindings, decode[admissionregistrationv1.ValidatingAdmissionPolicyBinding](b, r))
		}
	}
	for _, binding := range bindings {
		p := policies[binding.Spec.PolicyName]
		one := bound{rules: p.Spec.MatchConstraints.ResourceRules, object: labels.Everything(),
			ofNamespaces: labels.Everything(), validator: compile(b, &p)}
		if m := binding.Spec.MatchResources; m != nil {
			var err error
			if m.ObjectSelector != nil {
				one.object, err = metav1.LabelSelectorAsSelector(m.ObjectSelector)
				require.NoError(b, err)
			}
			if m.NamespaceSelector != nil {
				one.ofNamespaces, err = metav1.LabelSelectorAsSelector(m.NamespaceSelector)
				require.NoError(b, err)
			}
		}
		all = append(all, one)
	}
	return all, params
}

// compile compiles a policy as the API server does, with its exported code.
func compile(b *testing.B, p *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	b.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	require.NoError(b, err)
	with := cel.OptionalVariableDeclarations{HasParams: p.Spec.ParamKind != nil, HasAuthorizer: true}
	without := cel.OptionalVariableDeclarations{HasParams: with.HasParams}
	for i := range p.Spec.Variables {
		v := &p.Spec.Variables[i]
		compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, with,
			environment.StoredExpressions)
	}
	var conditions, rules, messages []cel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for _, rule := range p.Spec.Validations {
		rules = append(rules, &validating.ValidationCondition{Expression: rule.Expression, Message: rule.Message})
		var message cel.ExpressionAccessor
		if rule.MessageExpression != "" {
			message = &validating.MessageExpressionCondition{MessageExpression: rule.MessageExpression}
		}
		messages = append(messages, message)
	}
	evaluator := func(accessors []cel.ExpressionAccessor, d cel.OptionalVariableDeclarations) cel.ConditionEvaluator {
		return compiler.CompileCondition(accessors, d, environment.StoredExpressions)
	}
	matcher := matchconditions.NewMatcher(evaluator(conditions, with), p.Spec.FailurePolicy, "policy", "validate", p.Name)
	return validating.NewValidator(evaluator(rules, with), matcher, evaluator(nil, with), evaluator(messages, without),
		p.Spec.FailurePolicy)
}

// matches says whether the API server asks the policy at all.
func (p *bound) matches(a admission.Attributes, objects ...metav1.Object) bool {
	rule := func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		name := strings.TrimSuffix(a.GetResource().Resource+"/"+a.GetSubresource(), "/")
		return slices.Contains(r.APIGroups, a.GetResource().Group) && slices.Contains(r.Resources, name) &&
			slices.Contains(r.Operations, admissionregistrationv1.OperationType(a.GetOperation()))
	}
	selected := func(o metav1.Object) bool { return p.object.Matches(labels.Set(o.GetLabels())) }
	return slices.ContainsFunc(p.rules, rule) && p.ofNamespaces.Matches(labels.Set{}) &&
		slices.ContainsFunc(objects, selected)
}

// BenchmarkTenancy is what the policies of manifests/components/tenancy cost a request: those that are usual where jobs
// are queued.
func BenchmarkTenancy(b *testing.B) {
	all, params := policiesOf(b, "components/tenancy")
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{v1alpha1.LabelQuotaName: "team-a", "app": "training"},
	}}
	template.Spec = corev1.PodSpec{SchedulerName: "koord-scheduler", RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "c", Image: "registry.example.com/training:1", Args: []string{"--epochs=7"},
			Env: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "C", Value: "d"}}, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}}}}}
	meta := func(meta metav1.ObjectMeta) metav1.ObjectMeta {
		meta.Namespace, meta.Name = "team-a", "x"
		return meta
	}
	pod := &corev1.Pod{ObjectMeta: meta(template.ObjectMeta), Spec: template.Spec}
	plain := pod.DeepCopy()
	plain.Labels, plain.Spec.SchedulerName = map[string]string{"app": "web"}, corev1.DefaultSchedulerName
	spec := batchv1.JobSpec{Suspend: ptr.To(true), Template: template}
	job := &batchv1.Job{ObjectMeta: meta(template.ObjectMeta), Spec: spec}
	const accounts = "system:serviceaccount:"
	for _, r := range []struct {
		name, user string
		of         metav1.Object
		update     bool
	}{
		{"pod that the job controller makes", accounts + "kube-system:job-controller", pod, false},
		{"pod that the job controller lets go", accounts + "kube-system:job-controller", pod, true},
		{"pod of a Deployment", accounts + "kube-system:replicaset-controller", plain, false},
		{"pod by hand", "alice", pod, false},
		{"job by hand", "alice", job, false},
		{"job that is resumed", accounts + "koord-queue:jobqueue-controller", job, true},
	} {
		b.Run(r.name, func(b *testing.B) {
			v := request(r.of, r.user, r.update)
			b.ReportAllocs()
			for b.Loop() {
				asked := 0
				for i := range all {
					if all[i].matches(v, r.of) {
						asked++
						result := all[i].validator.Validate(context.Background(), v.GetResource(), v, params, &corev1.Namespace{},
							celconfig.RuntimeCELCostBudget, allowed{})
						for _, d := range result.Decisions {
							require.Equal(b, validating.ActionAdmit, d.Action, d.Message)
						}
					}
				}
				b.ReportMetric(float64(asked), "policies")
			}
		})
	}
}

func request(of metav1.Object, name string, update bool) *admission.VersionedAttributes {
	object := of.(runtime.Object)
	kind, resource := corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithResource("pods")
	if _, ok := of.(*batchv1.Job); ok {
		kind, resource = batchv1.SchemeGroupVersion.WithKind("Job"), batchv1.SchemeGroupVersion.WithResource("jobs")
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	var former, options runtime.Object
	operation := admission.Create
	options = &metav1.CreateOptions{}
	if update {
		former, operation, options = object, admission.Update, &metav1.UpdateOptions{}
	}
	return versioned(admission.NewAttributesRecord(object, former, kind, of.GetNamespace(), of.GetName(), resource, "",
		operation, options, false, &user.DefaultInfo{Name: name}), kind)
}

func versioned(a admission.Attributes, kind schema.GroupVersionKind) *admission.VersionedAttributes {
	return &admission.VersionedAttributes{
		Attributes: a, VersionedKind: kind, VersionedObject: a.GetObject(), VersionedOldObject: a.GetOldObject(),
	}
}

// allowed is an API server where everybody may do everything: what a right costs there is not measured.
type allowed struct{}

func (allowed) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}
