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

package controlplane

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// Sleep returns false if ctx ended before the time was over.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// WorkDir returns the directory that is given as an absolute path; if none is, it makes an empty one below _artifacts.
func WorkDir(dir, prefix string) (string, error) {
	if dir != "" {
		return filepath.Abs(dir)
	}
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(root, "_artifacts")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, prefix+"-")
}
