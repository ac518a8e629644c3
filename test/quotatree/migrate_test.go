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

package quotatree_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// Koordinator's webhook accepts the quotas that are made of the configuration of other systems, in their order.
func TestTheWebhookAcceptsMigratedQuotas(t *testing.T) {
	for _, source := range migrate.Sources {
		files, err := filepath.Glob(filepath.Join("../../internal/migrate/testdata", source.Name, "*.txt"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, block := range strings.Split(string(text), "migrate\n")[1:] {
				input, _, _ := strings.Cut(block, "\n----\n")
				w, out := newWorld(t), finding.List{}
				for _, object := range source.Convert(document.Decode([]byte(input), &out), &out) {
					require.NoError(t, w.admit("create", object), "%s: %s\n%s", file, object.GetName(), input)
				}
			}
		}
	}
}
