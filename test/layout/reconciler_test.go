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

package layout_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each controller is given a reconciler that asks again soon after an outage. controller-runtime alone waits for up to
// 1,000 seconds.
func TestReconcilersAskAgainAfterAnOutage(t *testing.T) {
	given, found := regexp.MustCompile(`(?:\bComplete\(|\bReconciler:\s+)(\S+)`), 0
	err := filepath.WalkDir(filepath.Join(root, "internal/controller"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range given.FindAllSubmatch(text, -1) {
			found++
			assert.True(t, strings.HasPrefix(string(m[1]), "outage.Retried("), "%s: %s", path, m[0])
		}
		return err
	})
	require.NoError(t, err)
	require.NotZero(t, found)
}
