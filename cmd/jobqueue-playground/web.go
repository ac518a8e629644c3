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
	"context"
	"fmt"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// startPage serves the page of "kubectl jobqueue web" to an administrator until the context ends, and returns its URL.
func startPage(ctx context.Context, cp *controlplane.ControlPlane) (url string, err error) {
	page, err := cli.Page(ctx, cp.Kubeconfig(controlplane.Admin))
	if err != nil {
		return "", fmt.Errorf("the page: %w", err)
	}
	go func() { _ = page.Serve(ctx) }() // the cluster goes on without it
	return page.URL(), nil
}
