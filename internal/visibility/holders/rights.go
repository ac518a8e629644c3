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

package holders

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// mostAsked is the number of namespaces about which one answer asks.
const mostAsked = 10

// Rights says whether the user of a request may read units of a namespace, or of all. The authorizer remembers answers
// for some seconds.
func Rights(by authorizer.Authorizer) func(ctx context.Context, namespace string) bool {
	return func(ctx context.Context, namespace string) bool {
		who, known := request.UserFrom(ctx)
		if !known {
			return false
		}
		decision, _, err := by.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: "list", Namespace: namespace, APIGroup: v1alpha1.SchemeGroupVersion.Group,
			APIVersion: v1alpha1.SchemeGroupVersion.Version, Resource: "units", ResourceRequest: true,
		})
		return err == nil && decision == authorizer.DecisionAllow
	}
}

// Once bounds the questions about namespaces that one answer costs. The reader may read his own namespace. The first
// question is whether he may read all namespaces. Then each namespace is asked about once, nine of them at most.
func Once(own string, may func(namespace string) bool) func(namespace string) bool {
	const all = ""
	answers := map[string]bool{own: true}
	return func(namespace string) bool {
		if answer, known := answers[namespace]; known {
			return answer
		}
		if _, known := answers[all]; !known {
			answers[all] = may(all)
		}
		if answers[all] || len(answers) > mostAsked {
			return answers[all]
		}
		answers[namespace] = may(namespace)
		return answers[namespace]
	}
}
