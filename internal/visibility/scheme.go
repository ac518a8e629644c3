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

package visibility

import (
	"fmt"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/unitselector"
)

// The server reads and writes one version only, and works on the same types.
var (
	scheme = newScheme()
	codecs = serializer.NewCodecFactory(scheme)
	// parameterCodec reads queries.
	parameterCodec = runtime.NewParameterCodec(scheme)
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(s))
	s.AddKnownTypes(schema.GroupVersion{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal},
		v1alpha1.Kinds()...)
	utilruntime.Must(s.SetVersionPriority(v1alpha1.SchemeGroupVersion))
	utilruntime.Must(s.AddConversionFunc((*url.Values)(nil), (*v1alpha1.PageOptions)(nil),
		func(a, b any, _ conversion.Scope) error { return readPage(*a.(*url.Values), b.(*v1alpha1.PageOptions)) }))
	utilruntime.Must(s.AddFieldLabelConversionFunc(v1alpha1.SchemeGroupVersion.WithKind("Record"), recordField))
	utilruntime.Must(s.AddFieldLabelConversionFunc(v1alpha1.SchemeGroupVersion.WithKind("Forecast"), forecastField))
	utilruntime.Must(s.AddFieldLabelConversionFunc(v1alpha1.SchemeGroupVersion.WithKind("Unit"), unitselector.Field))
	// Types of the library's own answers.
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	s.AddUnversionedTypes(schema.GroupVersion{Version: "v1"},
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return s
}

// readPage reads the query of a request.
func readPage(query url.Values, into *v1alpha1.PageOptions) (err error) {
	if into.Limit, err = number(query, "limit"); err != nil {
		return err
	}
	if into.Offset, err = number(query, "offset"); err != nil {
		return err
	}
	into.Continue = query.Get("continue")
	return nil
}

func number(query url.Values, name string) (int64, error) {
	text := query.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: %q is not a number from 0", name, text)
	}
	return n, nil
}
