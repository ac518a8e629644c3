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

package tenancy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

type policySpec = admissionregistrationv1.ValidatingAdmissionPolicySpec

func decode(t *testing.T, kind *jobkind.Kind, name string) map[string]policySpec {
	t.Helper()
	text, err := Manifest(kind, name, Deny)
	require.NoError(t, err)
	policies := map[string]policySpec{}
	bound := map[string]bool{}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		if bytes.Contains(document, []byte("kind: ValidatingAdmissionPolicyBinding")) {
			var b admissionregistrationv1.ValidatingAdmissionPolicyBinding
			require.NoError(t, yaml.UnmarshalStrict(document, &b))
			require.Equal(t, b.Name, b.Spec.PolicyName)
			require.Equal(t, "jobqueue-tenancy", b.Spec.ParamRef.Name)
			bound[b.Name] = true
			continue
		}
		var p admissionregistrationv1.ValidatingAdmissionPolicy
		require.NoError(t, yaml.UnmarshalStrict(document, &p))
		require.Equal(t, admissionregistrationv1.Fail, *p.Spec.FailurePolicy)
		policies[p.Name] = p.Spec
	}
	require.Len(t, bound, len(policies))
	for name := range policies {
		require.True(t, bound[name], name)
	}
	return policies
}

func expression(t *testing.T, p policySpec, name string) string {
	t.Helper()
	for _, v := range p.Variables {
		if v.Name == name {
			return v.Expression
		}
	}
	require.Fail(t, "no variable", name)
	return ""
}

// Every place of every kind is in the expressions; that they compile and refuse is shown by test/integration/api.
func TestEveryPlaceIsRead(t *testing.T) {
	for _, kind := range jobkind.Builtin() {
		t.Run(kind.File(), func(t *testing.T) {
			policies := decode(t, &kind, kind.File())
			queues := expression(t, policies["jobqueue-tenancy-queue-"+kind.File()], "queues")
			nodes := 0
			for _, p := range kind.MetadataPlaces() {
				require.Contains(t, expression(t, policies["jobqueue-tenancy-queue-"+kind.File()], "quotas"), rest(p.Labels)+"[?k]")
				if !kind.OfPods() { // manifests/components/tenancy has it for pods
					policy := policies["jobqueue-tenancy-quota-"+kind.File()]
					require.Contains(t, expression(t, policy, "quotas"), rest(p.Labels)+"[?k]")
					require.Contains(t, expression(t, policy, "quotas"), rest(p.Labels)+"[?'koord-queue/queue-path']")
					require.Contains(t, expression(t, policy, "quotas"), rest(p.Annotations)+"[?'koord-queue/queue-path']")
					policy = policies["jobqueue-tenancy-list-"+kind.File()]
					require.Contains(t, expression(t, policy, "texts"), rest(p.Annotations)+"[?'koord-queue/quota-names']")
				}
				require.Contains(t, queues, rest(p.Labels)+"[?variables.key]")
				require.Contains(t, queues, rest(p.Annotations)+"[?variables.key]")
				if p.NodeName != nil {
					nodes++
					of := policies["jobqueue-tenancy-template-"+kind.File()]
					require.Contains(t, expression(t, of, "nodes"), rest(p.NodeName))
					for name, key := range map[string]string{
						"schedulers": "schedulerName", "periods": "terminationGracePeriodSeconds", "classes": "priorityClassName",
					} {
						require.Contains(t, expression(t, of, name), strings.TrimSuffix(rest(p.NodeName), "nodeName")+key)
					}
					require.Contains(t, expression(t, of, "finalizers"), strings.TrimSuffix(rest(p.Labels), "labels")+"finalizers")
					require.Contains(t, expression(t, of, "groups"), rest(p.Annotations)+"[?'gang.scheduling.koordinator.sh/groups']")
				}
			}
			count := 5
			if nodes == 0 {
				count-- // the kind has no templates
			}
			if kind.OfPods() {
				count -= 2
			}
			require.Len(t, policies, count)
			for name, p := range policies {
				require.Equal(t, "jobqueue-tenancy-", name[:len("jobqueue-tenancy-")])
				require.Equal(t, []string{kind.GVR.Resource}, p.MatchConstraints.ResourceRules[0].Resources)
				require.Equal(t, []string{kind.GVR.Group}, p.MatchConstraints.ResourceRules[0].APIGroups)
				require.Equal(t, []string{kind.GVR.Version}, p.MatchConstraints.ResourceRules[0].APIVersions)
			}
		})
	}
}

// rest is what is read below the last star.
func rest(p jobkind.Path) string {
	text := p.String()
	if i := strings.LastIndex(text, "*"); i >= 0 {
		text = text[i+1:]
	}
	return ".?" + text[1:]
}

func TestPaths(t *testing.T) {
	read := func(field string) string { return field + ".orValue('')" }
	for want, p := range map[string]jobkind.Path{
		"job.?metadata.labels.orValue('')":           {"metadata", "labels"},
		"job.?spec[?'groups-of'].labels.orValue('')": {"spec", "groups-of", "labels"},
		"job[?'in'].a[?'true'].orValue('')":          {"in", "a", "true"},
		"[dyn(job.?a.orValue([]))] .map(v, type(v) == map ? v.map(k, v[k]) : v)[0].filter(e, type(e) == map) " +
			".map(e1, e1.?b.orValue('')).join('\\n')": {"a", "*", "b"},
		"[dyn(job.?a.orValue([]))] .map(v, type(v) == map ? v.map(k, v[k]) : v)[0].filter(e, type(e) == map) " +
			".map(e1, [dyn(e1.?b.orValue([]))] .map(v, type(v) == map ? v.map(k, v[k]) : v)[0].filter(e, type(e) == map) " +
			".map(e2, e2.?c.orValue('')).join('\\n')).join('\\n')": {"a", "*", "b", "*", "c"},
	} {
		require.Equal(t, want, strings.Join(strings.Fields(each("job", p, 1, read)), " "))
	}
}
