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
	"encoding/json"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// runKubeRay starts KubeRay. No Ray runs in the pods, so what it asks the dashboards of Ray is answered here.
func (c *ControlPlane) runKubeRay(ctx context.Context) error {
	health, err := allPorts.next()
	if err != nil {
		return err
	}
	m, err := c.managed(KubeRay, string(KubeRay), "--kubeconfig="+c.Kubeconfig(OperatorIdentity),
		"--enable-leader-election=false", "--metrics-addr=0", "--health-probe-bind-address="+hostPort(health))
	if err != nil {
		return err
	}
	dashboards, err := c.rayDashboards()
	if err != nil {
		return err
	}
	m.env = []string{
		"HTTP_PROXY=http://" + dashboards, // the API server speaks TLS, and so is none of it
		// KubeRay waits for pods that were gone before it saw them, 30 seconds by default.
		"RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV=5",
	}
	m.ready = operatorReady(health, nil)
	return c.launch(ctx, m)
}

// rayDashboards answers GET http://CLUSTER-head-svc.NAMESPACE.svc.cluster.local:8265/api/jobs/RAYJOB-SUFFIX for as long
// as this process lives: a job of Ray has ended as its submitter has.
func (c *ControlPlane) rayDashboards() (address string, err error) {
	client, err := kubernetes.NewForConfig(c.RESTConfig(OperatorIdentity))
	if err != nil {
		return "", err
	}
	listener, err := net.Listen("tcp", hostPort(0))
	if err != nil {
		return "", err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			_, host, _ := strings.Cut(r.URL.Host, ".")
			namespace, _, _ := strings.Cut(host, ".")
			id := path.Base(r.URL.Path)
			job, err := client.BatchV1().Jobs(namespace).Get(r.Context(), id[:max(0, strings.LastIndex(id, "-"))],
				metav1.GetOptions{})
			if err != nil {
				http.Error(w, err.Error(), http.StatusNotFound)
				return
			}
			status := "RUNNING"
			switch {
			case job.Status.Succeeded > 0:
				status = "SUCCEEDED"
			case job.Status.Failed > 0:
				status = "FAILED"
			}
			_ = json.NewEncoder(w).Encode(map[string]string{"status": status})
		})}
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), nil
}
