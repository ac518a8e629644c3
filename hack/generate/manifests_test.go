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

package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// quantityPattern is what controller-tools generates for a quantity.
const quantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))` +
	`(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

func TestAmountPattern(t *testing.T) {
	amount := regexp.MustCompile(amountPattern)
	for text, want := range map[string]bool{
		"0": true, "00": true, "1": true, "+1": true, "100m": true, "1.5Gi": true,
		".5": true, "5.": true, "1e3": true, "1e-3": true,
		"1E5": true, "1E": true, "5Ei": true, "1E+99": true, "1e-99": true, "1n": true, "1u": true, "9k": true, "007Ki": true,
		"": false, "-1": false, "-1m": false, "-.5": false, "+": false, ".": false,
		"+-1": false, "abc": false, "Ki": false, "1K": false,
		"1ki": false, "1mi": false, "1e": false, "1e+": false, "1e999": false,
		"1e-99999999": false, "1E001": false, "1e1.5": false,
		"1e3Ki": false, "1Eim": false, "1_000": false, "1,5": false, "0x1": false, " 1": false,
		"1 ": false, "1\n": false, "Inf": false,
		// Not negative, but nobody means it.
		"-0": false,
	} {
		require.Equal(t, want, amount.MatchString(text), "%q", text)
		if want {
			q, err := resource.ParseQuantity(text)
			require.NoError(t, err, "%q", text)
			require.GreaterOrEqual(t, q.Sign(), 0, "%q", text)
		}
	}
}

// TestAmountPatternEqualsParser tries every short text over the characters that a quantity can have, one of each kind.
func TestAmountPatternEqualsParser(t *testing.T) {
	amount, quantity := regexp.MustCompile(amountPattern), regexp.MustCompile(quantityPattern)
	longExponent := regexp.MustCompile(`[eE][+-]?[0-9]{3,}$`)
	accepted := 0
	var try func(text string)
	try = func(text string) {
		q, err := resource.ParseQuantity(text)
		want := err == nil && q.Sign() >= 0 && quantity.MatchString(text) && !longExponent.MatchString(text) &&
			!strings.HasPrefix(text, "-")
		if amount.MatchString(text) != want {
			t.Errorf("%q: accepted %v, want %v (%v)", text, !want, want, err)
		}
		if want {
			accepted++
		}
		if len(text) < 6 {
			for _, c := range "+-.07eEimkK" {
				try(text + string(c))
			}
		}
	}
	try("")
	require.Positive(t, accepted)
}

func TestAmounts(t *testing.T) {
	quantity := apiextensionsv1.JSONSchemaProps{XIntOrString: true, Pattern: quantityPattern}
	list := apiextensionsv1.JSONSchemaProps{
		Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: quantity.DeepCopy()},
	}
	port := apiextensionsv1.JSONSchemaProps{XIntOrString: true}
	s := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"request": *list.DeepCopy(),
		"step":    quantity,
		"ports":   {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: port.DeepCopy()}},
		"labels":  {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}},
		"pods": {Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"resources": *list.DeepCopy()},
		}}},
	}}
	amounts(&s)
	for name, of := range map[string]apiextensionsv1.JSONSchemaProps{
		"request": s.Properties["request"], "resources": s.Properties["pods"].Items.Schema.Properties["resources"],
	} {
		require.True(t, holdsAmounts(&of), name)
		require.Equal(t, ptrTo(0.0), of.AdditionalProperties.Schema.Minimum, name)
	}
	require.Equal(t, quantity, s.Properties["step"])
	require.Equal(t, &port, s.Properties["ports"].AdditionalProperties.Schema)
	require.False(t, holdsAmounts(ptrTo(s.Properties["labels"])))
}
