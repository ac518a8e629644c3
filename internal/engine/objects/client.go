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

package objects

import (
	"context"
	"encoding/json"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/codec"
)

// WireObject is a unit or a queue as client-go decodes it. Spec and status stay text. So a watch or a list never fails
// because of one unreadable object, and unused parts are never parsed.
type WireObject struct {
	Metadata wireMeta        `json:"metadata"`
	Spec     json.RawMessage `json:"spec"`
	Status   json.RawMessage `json:"status"`
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. Reflectors find in it what bookmarks say.
func (o *WireObject) GetObjectMeta() metav1.Object { return &o.Metadata.ObjectMeta }

// GetObjectKind implements runtime.Object. The kind is known by the Go type.
func (o *WireObject) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

type (
	WireUnit        struct{ WireObject }
	WireQueue       struct{ WireObject }
	WireCheck       struct{ WireObject }
	WireList[T any] struct {
		metav1.TypeMeta
		metav1.ListMeta `json:"metadata"`
		Items           []T `json:"items"`
	}
)

// DeepCopyObject implements runtime.Object. Decoded objects never change.
func (u *WireUnit) DeepCopyObject() runtime.Object { return u }

// DeepCopyObject implements runtime.Object. Decoded objects never change.
func (q *WireQueue) DeepCopyObject() runtime.Object { return q }

// DeepCopyObject implements runtime.Object. Decoded objects never change.
func (c *WireCheck) DeepCopyObject() runtime.Object { return c }

// DeepCopyObject implements runtime.Object. Decoded objects never change.
func (l *WireList[T]) DeepCopyObject() runtime.Object { return l }

// wireMeta is the metadata of an object without managed fields. If some of it cannot be read, what the object is known
// by still is.
type wireMeta struct {
	metav1.ObjectMeta
	unread error
}

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (m *wireMeta) UnmarshalJSON(text []byte) error {
	whole := struct {
		*metav1.ObjectMeta
		ManagedFields skipped `json:"managedFields"`
	}{ObjectMeta: &m.ObjectMeta}
	if m.unread = utiljson.Unmarshal(text, &whole); m.unread != nil {
		var known struct {
			Namespace       string    `json:"namespace"`
			Name            string    `json:"name"`
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		}
		_ = utiljson.Unmarshal(text, &known) // as far as it goes
		m.Namespace, m.Name, m.UID, m.ResourceVersion = known.Namespace, known.Name, known.UID, known.ResourceVersion
	}
	return nil
}

// skipped is not read.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (skipped) UnmarshalJSON([]byte) error { return nil }

// kinds that the engine reads. Of units and queues they are its own types.
var kinds = func() *runtime.Scheme {
	scheme, version := runtime.NewScheme(), v1alpha1.SchemeGroupVersion
	scheme.AddKnownTypeWithName(version.WithKind("QueueUnit"), &WireUnit{})
	scheme.AddKnownTypeWithName(version.WithKind("QueueUnitList"), &WireList[WireUnit]{})
	scheme.AddKnownTypeWithName(version.WithKind("Queue"), &WireQueue{})
	scheme.AddKnownTypeWithName(version.WithKind("QueueList"), &WireList[WireQueue]{})
	metav1.AddToGroupVersion(scheme, version)
	for _, checks := range v1beta1.AdmissionCheckResources {
		version := checks.GroupVersion()
		scheme.AddKnownTypeWithName(version.WithKind("AdmissionCheck"), &WireCheck{})
		scheme.AddKnownTypeWithName(version.WithKind("AdmissionCheckList"), &WireList[WireCheck]{})
		metav1.AddToGroupVersion(scheme, version)
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(schedulingv1.AddToScheme(scheme))
	return scheme
}()

var parameters = runtime.NewParameterCodec(kinds)

// NewClient makes what Options.Client takes.
func NewClient(cfg *rest.Config) (rest.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.ContentConfig = rest.ContentConfig{
		AcceptContentTypes: runtime.ContentTypeJSON, ContentType: runtime.ContentTypeJSON,
		NegotiatedSerializer: codec.New(kinds),
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	return rest.UnversionedRESTClientFor(cfg)
}

// At makes it a request for objects of a namespace, or of all for "".
func At(request *rest.Request, resource schema.GroupVersionResource, namespace string) *rest.Request {
	return request.AbsPath("/apis", resource.Group, resource.Version).
		NamespaceIfScoped(namespace, namespace != "").Resource(resource.Resource)
}

// With adds the options of a list or a watch.
func With(request *rest.Request, o *metav1.ListOptions) *rest.Request {
	return request.SpecificallyVersionedParams(o, parameters, schema.GroupVersion{Version: "v1"})
}

func GetUnit(ctx context.Context, client rest.Interface, name types.NamespacedName) (*Unit, error) {
	u := &WireUnit{}
	if err := At(client.Get(), v1alpha1.QueueUnitResource, name.Namespace).Name(name.Name).Do(ctx).Into(u); err != nil {
		return nil, err
	}
	return DecodeUnit(u), nil
}
