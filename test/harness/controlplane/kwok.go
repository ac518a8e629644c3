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
	_ "embed"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// kwokUser is the user name of KWOKIdentity.
const kwokUser = "kwok"

// kwokConfig says how KWOK plays nodes and pods. How long a pod runs is in its annotation RunTimeAnnotation.
//
//go:embed kwok.yaml
var kwokConfig []byte

//go:embed kwok-rbac.yaml
var kwokRBAC []byte

const (
	// RunTimeAnnotation on a pod says how long it runs before it succeeds, as a duration like "1.5s".
	// A pod of a Job without it runs for a second; other pods without it run until they are deleted.
	RunTimeAnnotation = "pod-complete.stage.kwok.x-k8s.io/delay"
	// FailAnnotation with the value "true" makes a pod fail after RunTimeAnnotation instead.
	FailAnnotation = "jobqueue-playground/fail"
)

func (c *ControlPlane) kwok() (*managed, error) {
	port, err := allPorts.next()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(c.opts.Dir, "kwok.yaml")
	if err := os.WriteFile(config, kwokConfig, 0o644); err != nil {
		return nil, err
	}
	m, err := c.managed(KWOK, "kwok",
		"--kubeconfig="+c.Kubeconfig(KWOKIdentity),
		"--config="+config,
		"--manage-all-nodes",
		// Leases would be the heartbeat of the nodes; nothing watches for it, and a restarted KWOK would
		// wait minutes for the old leases to end.
		"--node-lease-duration-seconds=0",
		"--server-address="+hostPort(port),
	)
	if err != nil {
		return nil, err
	}
	m.ready = httpOK(http.DefaultClient, "http://"+hostPort(port)+"/healthz", "")
	return m, nil
}

// RepositoryRoot returns the directory of the go.mod of this project, at or above the current directory.
func RepositoryRoot() (string, error) {
	const module = "module github.com/koord-jobqueue/koord-jobqueue\n"
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), module) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod of this project at or above the current directory")
		}
		dir = parent
	}
}
