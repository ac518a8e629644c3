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

package certificate

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// lookEvery is how often the Secret and the APIService are read: two requests, by name.
const lookEvery = 30 * time.Second

// injectedBy is the annotation by which cert-manager writes the bundle of an APIService.
const injectedBy = "cert-manager.io/inject-ca-from"

const fieldOwner = client.FieldOwner(v1alpha1.CreatedByController)

// apiServiceKind is read without its Go type, for three of its fields.
var apiServiceKind = schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}

// Keeper keeps the certificate of one APIService in one Secret, and the bundle of the APIService with it. Both have to
// exist. It is a Runnable of the manager, which runs it where it leads.
type Keeper struct {
	APIService string
	Secret     types.NamespacedName
	// Reader reads from the API server itself: the rights to both objects end at their names.
	Reader client.Reader
	Writer client.Writer
	Clock  clock.Clock
}

var (
	_ manager.Runnable               = &Keeper{}
	_ manager.LeaderElectionRunnable = &Keeper{}
)

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (k *Keeper) NeedLeaderElection() bool { return true }

// Start looks now and then until the context ends.
func (k *Keeper) Start(ctx context.Context) error {
	logger := klog.FromContext(ctx).WithValues("apiService", k.APIService, "secret", k.Secret)
	for {
		after, err := k.look(klog.NewContext(ctx, logger))
		if err != nil && ctx.Err() == nil {
			logger.Error(err, "The certificate of the visibility API was not looked after")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.Clock.After(min(max(after, time.Second), lookEvery)):
		}
	}
}

// look does what must be done, and says when to look again.
func (k *Keeper) look(ctx context.Context) (time.Duration, error) {
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(apiServiceKind)
	switch err := k.Reader.Get(ctx, types.NamespacedName{Name: k.APIService}, service); {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		klog.FromContext(ctx).V(1).Info("The visibility API is not installed", "cause", err)
		return lookEvery, nil
	case err != nil:
		return lookEvery, err
	case service.GetAnnotations()[injectedBy] != "":
		return lookEvery, nil
	}
	host, err := hostOf(service)
	if err != nil {
		return lookEvery, err
	}
	secret := &corev1.Secret{}
	if err := k.Reader.Get(ctx, k.Secret, secret); err != nil {
		return lookEvery, err
	}
	now := k.Clock.Now()
	step, err := Plan(secret.Data, host, now, func() (pair, error) { return newPair(host, now) })
	if err != nil {
		return lookEvery, err
	}
	return step.After, k.do(ctx, &step, secret, service)
}

// do writes the bundle first: nothing is served that is not trusted, also where the Secret alone can be written. A next
// certificate whose Secret could not be written is lost, and another one is made with the next look.
func (k *Keeper) do(ctx context.Context, step *Step, secret *corev1.Secret, service *unstructured.Unstructured) error {
	bundle := base64.StdEncoding.EncodeToString(step.Trusted)
	if have, _, _ := unstructured.NestedString(service.Object, "spec", "caBundle"); have != bundle {
		patch := fmt.Sprintf(`{"spec":{"caBundle":%q}}`, bundle)
		if err := k.Writer.Patch(ctx, service, client.RawPatch(types.MergePatchType, []byte(patch)), fieldOwner); err != nil {
			return err
		}
	}
	if !step.Changed {
		return nil
	}
	secret.Data = step.Data
	if err := k.Writer.Update(ctx, secret, fieldOwner); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Wrote the certificate of the visibility API", "reason", step.Reason)
	return nil
}

// hostOf is the name by which the API server verifies the server.
func hostOf(service *unstructured.Unstructured) (string, error) {
	name, _, _ := unstructured.NestedString(service.Object, "spec", "service", "name")
	namespace, _, _ := unstructured.NestedString(service.Object, "spec", "service", "namespace")
	if name == "" || namespace == "" {
		return "", errors.New("the APIService names no Service")
	}
	return name + "." + namespace + ".svc", nil
}
