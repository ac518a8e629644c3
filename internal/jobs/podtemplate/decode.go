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

// Package podtemplate decodes pod templates, and reduces them to the fields that scheduling needs.
package podtemplate

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// ErrMalformed marks an object whose fields are not of the type that they should have.
var ErrMalformed = podset.ErrMalformed

// maxQuantityText is the greatest length of an amount; longExponent finds exponents that no amount needs. To add or
// compare a quantity like 1e99999999 takes minutes, and one such job must not cost others that time.
const maxQuantityText = 64

var longExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{2,}$`)

// quantityLists are the fields of a pod template, a QueueUnit or a quota that map resources to amounts; quantityFields
// are single amounts.
var (
	quantityLists = map[string]bool{
		"requests": true, "limits": true, "overhead": true, // of pods
		"request": true, "resource": true, "resources": true, // of a QueueUnit
		"min": true, "max": true, "used": true, // of a quota
	}
	quantityFields = map[string]bool{"sizeLimit": true, "divisor": true}
)

// Decode reads a pod template from JSON. The error is ErrMalformed; text that would take
// unreasonable time to read is refused as such.
func Decode(raw []byte) (*corev1.PodTemplateSpec, error) {
	template := &corev1.PodTemplateSpec{}
	if err := DecodeInto(raw, template); err != nil {
		return nil, err
	}
	return template, nil
}

// DecodeInto reads a typed object from JSON as the API server does: fields by their exact names. encoding/json also
// takes "Requests" for requests, and the last of several fields of one name. Then the checked value could differ from
// the one that is read.
func DecodeInto(raw []byte, into any) error {
	var fields map[string]any
	if err := utiljson.Unmarshal(raw, &fields); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := CheckQuantities(fields); err != nil {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// CheckQuantities looks at the text of all amounts below a decoded JSON value, before any of them is read as a
// quantity. The error is ErrMalformed.
func CheckQuantities(value any) error {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if err := checkField(key, item); err != nil {
				return err
			}
			if err := CheckQuantities(item); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := CheckQuantities(item); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkField(key string, value any) error {
	if quantityFields[key] {
		return checkAmount(key, value)
	}
	if !quantityLists[key] {
		return nil
	}
	amounts, _ := value.(map[string]any)
	for name, amount := range amounts {
		if err := checkAmount(name, amount); err != nil {
			return err
		}
	}
	return nil
}

func checkAmount(name string, amount any) error {
	text, ok := amount.(string)
	// A quantity is read without the space around it.
	if ok && (len(text) > maxQuantityText || longExponent.MatchString(strings.TrimSpace(text))) {
		return fmt.Errorf("%w: %q is no reasonable amount of %s", ErrMalformed, text[:min(len(text), maxQuantityText)], name)
	}
	return nil
}
