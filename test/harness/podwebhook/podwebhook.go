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

// Package podwebhook serves an admission webhook that changes the requests of pods, from inside of a test.
package podwebhook

import (
	"encoding/pem"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// Serve answers with the handler until the test ends. It returns the registration, which the caller creates: the
// webhook is asked about new pods in namespaces with the labels.
func Serve(
	t *testing.T, configuration, webhook string, namespaces map[string]string, handler admission.Handler,
) *admissionregistrationv1.MutatingWebhookConfiguration {
	t.Helper()
	standalone, err := admission.StandaloneWebhook(&admission.Webhook{Handler: handler}, admission.StandaloneOptions{})
	require.NoError(t, err)
	server := httptest.NewTLSServer(standalone)
	t.Cleanup(server.Close)
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configuration},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: webhook, AdmissionReviewVersions: []string{"v1"},
			SideEffects:       ptr.To(admissionregistrationv1.SideEffectClassNone),
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: namespaces},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To(server.URL),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
				},
			}},
		}},
	}
}
