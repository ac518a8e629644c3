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

// Package overlay writes changes of a reduced object into the whole object.
package overlay

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// InLists says whether two states of an object differ inside of a list. A patch sends such a list as a whole, so
// it must not be made of an object of which only parts are kept.
func InLists(before, after *unstructured.Unstructured) bool {
	return changesLists(before.Object, after.Object)
}

func changesLists(before, after any) bool {
	switch b := before.(type) {
	case map[string]any:
		a, ok := after.(map[string]any)
		if !ok {
			return false
		}
		for key, value := range b {
			if changesLists(value, a[key]) {
				return true
			}
		}
	case []any:
		return !equality.Semantic.DeepEqual(before, after)
	}
	return false
}

// Of is the whole object with what differs between two states of which parts are kept. Elements of lists are told
// apart by their index: all three have to be of one resourceVersion.
func Of(whole, before, after *unstructured.Unstructured) *unstructured.Unstructured {
	changed, _ := overlay(whole.DeepCopy().Object, before.Object, after.DeepCopy().Object).(map[string]any)
	return &unstructured.Unstructured{Object: changed}
}

func overlay(whole, before, after any) any {
	if equality.Semantic.DeepEqual(before, after) {
		return whole
	}
	switch a := after.(type) {
	case map[string]any:
		b, was := before.(map[string]any)
		w, is := whole.(map[string]any)
		if !was || !is {
			return after
		}
		return overlayMap(w, b, a)
	case []any:
		b, was := before.([]any)
		w, is := whole.([]any)
		if !was || !is || len(a) != len(b) || len(a) != len(w) {
			return after
		}
		for i := range a {
			w[i] = overlay(w[i], b[i], a[i])
		}
		return w
	default:
		return after
	}
}

func overlayMap(whole, before, after map[string]any) map[string]any {
	for key := range before {
		if _, ok := after[key]; !ok {
			delete(whole, key)
		}
	}
	for key, value := range after {
		old, had := before[key]
		kept, has := whole[key]
		switch {
		case had && has:
			whole[key] = overlay(kept, old, value)
		case has:
			whole[key] = Merged(kept, value)
		default:
			whole[key] = value
		}
	}
	return whole
}

// Merged is what is added to a map of which nothing was kept.
func Merged(whole, added any) any {
	w, is := whole.(map[string]any)
	a, was := added.(map[string]any)
	if !is || !was {
		return added
	}
	for key, value := range a {
		w[key] = Merged(w[key], value)
	}
	return w
}
