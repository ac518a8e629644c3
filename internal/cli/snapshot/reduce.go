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

// Package snapshot reduces the objects that the scheduler reads to the parts that a bug report needs.
package snapshot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

// namesAt are the fields that name an object, below which nothing else is.
var namesAt = [][]string{
	{"metadata", "name"},
	{"metadata", "namespace"},
	{"spec", "queue"},
	{"spec", "priorityClassName"},
	{"spec", "consumerRef", "name"},
	{"spec", "consumerRef", "namespace"},
	{"status", "effective", "queue"},
	{"status", "effective", "quota"},
}

// namedBy are the labels and annotations whose values are names, lists of names separated by commas, or paths. Those of
// the other keys in kept say how the queue is to behave.
var namedBy = append([]string{
	v1alpha1.QueueNameKey, v1alpha1.LabelQuotaParent, v1alpha1.AnnotationAvailableQuota,
	v1alpha1.AnnotationAvailableQuotaShort, v1alpha1.AnnotationGangGroup, v1alpha1.AnnotationGangs,
	v1alpha1.AnnotationOverrideQueue, v1alpha1.QueuePathKey,
}, v1alpha1.QuotaLabels[:]...)

// kept are the prefixes of labels and annotations that the queue or Koordinator reads.
var kept = []string{
	"koord-queue/", "scheduling.x-k8s.io/", "quota.scheduling.koordinator.sh/", "alibabacloud.com/quota-name",
	"quota.scheduling.alibabacloud.com/",
}

// Reduce removes what no decision depends on. With a key it also replaces each name by its HMAC-SHA256 under the key,
// of which it keeps 48 bits, and removes messages.
func Reduce(object *unstructured.Unstructured, key []byte) error {
	object.SetManagedFields(nil)
	object.SetOwnerReferences(nil)
	object.SetLabels(reduced(object.GetLabels(), key))
	object.SetAnnotations(reduced(object.GetAnnotations(), key))
	if err := reducePodSets(object, key); err != nil || key == nil {
		return err
	}
	for _, fields := range namesAt {
		name, found, _ := unstructured.NestedString(object.Object, fields...)
		if !found || name == "" || fields[0] == "metadata" && builtin(name) {
			continue
		}
		if err := unstructured.SetNestedField(object.Object, hash(name, key), fields...); err != nil {
			return err
		}
	}
	unstructured.RemoveNestedField(object.Object, "description")
	unstructured.RemoveNestedField(object.Object, "status", "message")
	unstructured.RemoveNestedField(object.Object, "status", "queueItemDetails")
	unstructured.RemoveNestedField(object.Object, "status", "admissionChecks")
	unstructured.RemoveNestedField(object.Object, "spec", "consumerRef", "uid")
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, ok := c.(map[string]any); ok {
			condition["message"] = ""
		}
	}
	if conditions != nil {
		return unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions")
	}
	return nil
}

// builtin names are the same everywhere and tell nothing.
func builtin(name string) bool {
	return name == v1alpha1.DefaultQueueNamespace || strings.HasPrefix(name, "system-") ||
		strings.HasPrefix(name, "koordinator-") || strings.HasPrefix(name, "koord-")
}

// Name is what a name of an object becomes under the key.
func Name(name string, key []byte) string {
	if builtin(name) {
		return name
	}
	return hash(name, key)
}

func hash(name string, key []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(name))
	return "n" + hex.EncodeToString(mac.Sum(nil)[:6])
}

func reduced(values map[string]string, key []byte) map[string]string {
	out := map[string]string{}
	for k, v := range values {
		if !slices.ContainsFunc(kept, func(prefix string) bool { return strings.HasPrefix(k, prefix) }) {
			continue
		}
		between := ","
		if k == v1alpha1.QueuePathKey {
			between = "."
		}
		if key != nil && v != "" && v != "*" && slices.Contains(namedBy, k) {
			names := strings.Split(v, between)
			for i := range names {
				names[i] = hash(strings.TrimSpace(names[i]), key)
			}
			v = strings.Join(names, between)
		}
		out[k] = v
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// reducePodSets reduces pod templates to the fields for scheduling, and removes unreadable ones. The scheduler reads
// only those labels of a template that belong to the queue.
func reducePodSets(object *unstructured.Unstructured, key []byte) error {
	for _, fields := range [][]string{{"spec", "podSet"}, {"status", "admissions"}, {"status", "reclaimablePods"}} {
		sets, found, _ := unstructured.NestedSlice(object.Object, fields...)
		if !found {
			continue
		}
		for _, s := range sets {
			set, ok := s.(map[string]any)
			if !ok {
				continue
			}
			if name, named := set["name"].(string); named && key != nil {
				set["name"] = hash(name, key)
			}
			if template, has := set["template"]; has {
				set["template"] = reducedTemplate(template, key)
			}
		}
		if err := unstructured.SetNestedSlice(object.Object, sets, fields...); err != nil {
			return err
		}
	}
	return nil
}

func reducedTemplate(template any, key []byte) map[string]any {
	raw, err := json.Marshal(template)
	if err == nil {
		raw, err = podtemplate.Reduce(raw)
	}
	out := &unstructured.Unstructured{}
	if err != nil || json.Unmarshal(raw, &out.Object) != nil || out.Object == nil {
		return map[string]any{}
	}
	out.SetLabels(reduced(out.GetLabels(), key))
	out.SetAnnotations(reduced(out.GetAnnotations(), key))
	if key != nil {
		for _, list := range []string{"containers", "initContainers"} {
			containers, _, _ := unstructured.NestedSlice(out.Object, "spec", list)
			for _, c := range containers {
				if container, ok := c.(map[string]any); ok {
					delete(container, "name")
				}
			}
			if containers != nil {
				_ = unstructured.SetNestedSlice(out.Object, containers, "spec", list) // the path exists
			}
		}
	}
	return out.Object
}
