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

package standin

import (
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// PodWebhook plays the webhook of pods of LeaderWorkerSet. It gives each pod of a set the labels that its StatefulSet
// cannot, because they differ by pod. While nobody serves it no such pod can be created, as in reality.
type PodWebhook struct {
	// Client registers it.
	Client client.Client

	registered atomic.Bool
}

// check is for readiness.
func (w *PodWebhook) check(*http.Request) error {
	if !w.registered.Load() {
		return errors.New("not registered yet")
	}
	return nil
}

const loopback = "127.0.0.1"

// Start serves on a port of its own of the loopback interface and registers that, until the context ends.
func (w *PodWebhook) Start(ctx context.Context) error {
	certificate, key, err := certutil.GenerateSelfSignedCertKey(loopback, []net.IP{net.ParseIP(loopback)}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	handler, err := admission.StandaloneWebhook(&admission.Webhook{Handler: admission.HandlerFunc(w.handle)},
		admission.StandaloneOptions{})
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(loopback, "0"), &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if err := w.register(ctx, "https://"+listener.Addr().String(), certificate); err != nil {
		return errors.Join(err, server.Close())
	}
	w.registered.Store(true)
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (w *PodWebhook) register(ctx context.Context, url string, ca []byte) error {
	config := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "lws-mutating-webhook-configuration"},
	}
	_, err := controllerutil.CreateOrUpdate(ctx, w.Client, config, func() error {
		config.Webhooks = []admissionregistrationv1.MutatingWebhook{{
			Name: "mpod.kb.io", AdmissionReviewVersions: []string{"v1"},
			SideEffects:   ptr.To(admissionregistrationv1.SideEffectClassNone),
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			ClientConfig:  admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca},
			ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: lwsNameLabel, Operator: metav1.LabelSelectorOpExists},
			}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"},
				},
			}},
		}}
		return nil
	})
	return err
}

func (w *PodWebhook) handle(_ context.Context, request admission.Request) admission.Response {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if err := labelGroup(pod, request.Namespace); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	changed, err := json.Marshal(pod)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, changed)
}

// labelGroup: a leader learns its group, a worker its place in it.
func labelGroup(pod *corev1.Pod, namespace string) error {
	if pod.Labels[lwsNameLabel] == "" {
		return nil
	}
	size := pod.Annotations[lwsSizeAnnotation]
	if size == "" {
		return fmt.Errorf("pod %s has no annotation %s", pod.Name, lwsSizeAnnotation)
	}
	index, err := ordinal(pod)
	if err != nil {
		return err
	}
	leader := pod.Annotations[lwsLeaderAnnotation]
	if pod.Labels[lwsIndexLabel] == "0" {
		leader = pod.Name
		pod.Labels[lwsGroupLabel] = itoa(index)
		sum := sha1.Sum([]byte(namespace + "/" + pod.Name)) // protects nothing
		pod.Labels[lwsKeyLabel] = hex.EncodeToString(sum[:])
	} else {
		pod.Labels[lwsIndexLabel] = itoa(index)
	}
	address := fmt.Sprintf("%s.%s.%s", leader, pod.Labels[lwsNameLabel], namespace)
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Env = append([]corev1.EnvVar{
			{Name: "LWS_LEADER_ADDRESS", Value: address}, {Name: "LWS_GROUP_SIZE", Value: size},
			{Name: "LWS_WORKER_INDEX", Value: pod.Labels[lwsIndexLabel]},
		}, pod.Spec.Containers[i].Env...)
	}
	return nil
}
