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
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The accessors take a field of another type than the one asked for as absent: what the CRDs let through is right.

func flag(object map[string]any, fields ...string) bool {
	value, _, _ := unstructured.NestedBool(object, fields...)
	return value
}

func text(object map[string]any, fields ...string) string {
	value, _, _ := unstructured.NestedString(object, fields...)
	return value
}

func textOr(fallback string, object map[string]any, fields ...string) string {
	if value := text(object, fields...); value != "" {
		return value
	}
	return fallback
}

func number(object map[string]any, fields ...string) (int64, bool) {
	value, found, _ := unstructured.NestedFieldNoCopy(object, fields...)
	if !found {
		return 0, false
	}
	switch value := value.(type) {
	case int64:
		return value, true
	case int:
		return int64(value), true
	case float64:
		return int64(value), true
	}
	return 0, false
}

func numberOr(fallback int64, object map[string]any, fields ...string) int64 {
	if value, found := number(object, fields...); found {
		return value
	}
	return fallback
}

func part(object map[string]any, fields ...string) map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	found, _ := value.(map[string]any)
	return found
}

// parts are the objects of a list.
func parts(object map[string]any, fields ...string) []map[string]any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, fields...)
	list, _ := value.([]any)
	out := make([]map[string]any, 0, len(list))
	for _, element := range list {
		if element, ok := element.(map[string]any); ok {
			out = append(out, element)
		}
	}
	return out
}

func texts(object map[string]any, fields ...string) map[string]string {
	value, _, _ := unstructured.NestedStringMap(object, fields...)
	return value
}

// decode reads a part of an object as a type of Kubernetes.
func decode[T any](object any) (T, error) {
	var out T
	content, err := json.Marshal(object)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(content, &out)
}

// podTemplate reads a pod template, which must have a container as operators work on the first one.
func podTemplate(object map[string]any, fields ...string) (corev1.PodTemplateSpec, error) {
	template, err := decode[corev1.PodTemplateSpec](part(object, fields...))
	if err == nil && len(template.Spec.Containers) == 0 {
		err = fmt.Errorf("no container in the template %v", fields)
	}
	return template, err
}

// status is the status of an object, created if absent. Changes of it are changes of the object.
func status(object *unstructured.Unstructured) map[string]any {
	if part(object.Object, "status") == nil {
		object.Object["status"] = map[string]any{}
	}
	return part(object.Object, "status")
}

// set sets a field of a status; an empty text removes it.
func set(status map[string]any, field string, value any) {
	if value == "" || value == nil {
		delete(status, field)
		return
	}
	status[field] = value
}

func timestamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// merged are the maps in one; the later ones win.
func merged(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, one := range all {
		maps.Copy(out, one)
	}
	return out
}

func count[T any](list []T, is func(T) bool) int64 {
	n := int64(0)
	for _, element := range list {
		if is(element) {
			n++
		}
	}
	return n
}

func int32Of(n int64) int32 { return int32(max(math.MinInt32, min(n, math.MaxInt32))) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// ownedBy is the reference of a child to its controller.
func ownedBy(owner *unstructured.Unstructured) []metav1.OwnerReference {
	return []metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())}
}
