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

package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// policyNameOf a kind is the end of the names of its policies.
func policyNameOf(kind *jobkind.Kind) string {
	return cmp.Or(kind.File(), strings.ToLower(kind.String()))
}

func refuses(i *Installation, policy string) bool {
	return slices.Contains(i.Bindings[policy], admissionregistrationv1.Deny)
}

// warningKinds are the names of the kinds with a policy that warns, with these policies.
type warningKinds map[string][]string

// kindsThatWarn are among the managed and the built-in kinds, where the policies of Jobs refuse. Jobs of a kind that is
// not managed become pods, too.
func kindsThatWarn(i *Installation) warningKinds {
	found := warningKinds{}
	if !refuses(i, policyPrefix+"quota") {
		return found
	}
	for _, kind := range slices.Concat(i.Managed, jobkind.Builtin()) {
		if found[kind.String()] != nil {
			continue
		}
		for _, rule := range corePolicies {
			policy := policyPrefix + rule + "-" + policyNameOf(&kind)
			if len(i.Bindings[policy]) > 0 && !refuses(i, policy) {
				found[kind.String()] = append(found[kind.String()], policy)
			}
		}
	}
	return found
}

func (w warningKinds) covers(policy string) bool {
	for _, policies := range w {
		if slices.Contains(policies, policy) {
			return true
		}
	}
	return false
}

func (w warningKinds) findings() (f []Finding) {
	for kind, policies := range w {
		f = append(f, Finding{Warning, "KindPolicyWarns", fmt.Sprintf("Policies of kind %s warn, and those of Jobs refuse: "+
			"its jobs charge any quota. They are %s.", kind, strings.Join(policies, ", ")),
			kindsCommand("policy", kind)})
	}
	slices.SortFunc(f, func(a, b Finding) int { return strings.Compare(a.Message, b.Message) })
	return f
}

// kindsCommand installs what a kind needs. The description of one that is not built in is in a file.
func kindsCommand(what, kind string) string {
	if _, builtIn := jobkind.Find(kind); !builtIn {
		kind += " --managed-jobs=FILE"
	}
	return "kubectl jobqueue kinds " + what + " " + kind + " | kubectl apply -f -"
}
