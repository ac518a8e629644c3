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
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var alertHeadline = regexp.MustCompile(`(?m)^### (Jobqueue\w+)\n\n(\w[^#]*)`)

func TestEachAlertHasItsParagraph(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", alertsDocument))
	require.NoError(t, err)
	var described, named []string
	for _, match := range alertHeadline.FindAllStringSubmatch(string(text), -1) {
		described = append(described, match[1])
		require.Greater(t, len(strings.Fields(match[2])), 10, "%s: what it means, and what to do", match[1])
	}
	for i := range alerts {
		named = append(named, alerts[i].name)
	}
	require.Equal(t, named, described, "alerts, and headlines in %s in the same order", alertsDocument)
}
