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
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// controlPlaneBinary is etcd, kube-apiserver and kube-controller-manager in one.
const controlPlaneBinary = "jobqueue-controlplane"

const (
	readyInterval = 50 * time.Millisecond
	// readyTimeout is generous for a machine whose cores are busy with a build.
	readyTimeout = 90 * time.Second
)

// managed makes a process of the binary, which must exist.
func (c *ControlPlane) managed(component Component, binary string, args ...string) (*managed, error) {
	path := binary
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.opts.Bin, binary)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w; `make build` builds it", err)
	}
	return &managed{
		process: &process{
			component: component,
			path:      path,
			args:      args,
			log:       c.LogPath(component),
			exits:     c.exits,
		},
		readyTimeout: readyTimeout,
	}, nil
}

// awaitReady polls m.ready until it works, its process ends, or the time is over.
func (c *ControlPlane) awaitReady(ctx context.Context, m *managed) error {
	if m.ready == nil {
		return nil
	}
	ended := m.running()
	if ended == nil {
		return errors.New("the process ended at once")
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyInterval, m.readyTimeout, true, func(ctx context.Context) (bool, error) {
		select {
		case <-ended:
			return false, errors.New("the process ended")
		default:
		}
		last = m.ready(ctx)
		return last == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// httpOK returns a check that a GET of url answers 200.
func httpOK(client *http.Client, url, token string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // read only
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1024))
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: %s: %q", url, resp.Status, body)
		}
		return nil
	}
}

func (c *ControlPlane) etcd() (*managed, error) {
	client, err := allPorts.next()
	if err != nil {
		return nil, err
	}
	peer, err := allPorts.next()
	if err != nil {
		return nil, err
	}
	url := "http://" + hostPort(client)
	m, err := c.managed(Etcd, controlPlaneBinary, "etcd",
		"--data-dir="+filepath.Join(c.opts.Dir, "etcd"),
		"--client-url="+url,
		"--peer-url=http://"+hostPort(peer),
	)
	if err != nil {
		return nil, err
	}
	m.url = url
	m.ready = httpOK(http.DefaultClient, url+"/health", "")
	return m, nil
}

func (c *ControlPlane) apiServer(port int) (*managed, error) {
	etcd, err := c.get(Etcd)
	if err != nil {
		return nil, err
	}
	args := []string{"kube-apiserver",
		"--etcd-servers=" + etcd.url,
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--tls-cert-file=" + c.pki.path("apiserver.crt"),
		"--tls-private-key-file=" + c.pki.path("apiserver.key"),
		"--client-ca-file=" + c.pki.path("ca.crt"),
		"--token-auth-file=" + c.pki.path("tokens.csv"),
		// By these an aggregated API knows that the API server passes on who asks.
		"--requestheader-client-ca-file=" + c.pki.path("front-proxy-ca.crt"),
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki.path("front-proxy-client.crt"),
		"--proxy-client-key-file=" + c.pki.path("front-proxy-client.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki.path("service-account.key"),
		"--service-account-signing-key-file=" + c.pki.path("service-account.key"),
		"--authorization-mode=RBAC",
		"--anonymous-auth=false",
		// The part that plays kube-proxy (RunDeployments) listens on these.
		"--service-cluster-ip-range=127.96.0.0/16",
		// Nobody calls the API server by its Service.
		"--endpoint-reconciler-type=none",
		// See the comment of the package.
		"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
		"--event-ttl=30m",
		"--profiling=false",
		"--shutdown-delay-duration=0s",
	}
	audit, err := c.auditArgs()
	if err != nil {
		return nil, err
	}
	m, err := c.managed(APIServer, controlPlaneBinary, slices.Concat(args, audit, c.opts.APIServerArgs)...)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.pki.ca)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
	m.url = c.server
	m.ready = httpOK(client, c.server+"/readyz", c.pki.tokens[Admin])
	return m, nil
}

// auditArgs are the flags of an API server that writes the audit log.
func (c *ControlPlane) auditArgs() ([]string, error) {
	if c.opts.AuditPolicy == "" {
		return nil, nil
	}
	policy := filepath.Join(filepath.Dir(c.AuditLog()), "policy.yaml")
	if err := os.MkdirAll(filepath.Dir(policy), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(policy, []byte(c.opts.AuditPolicy), 0o600); err != nil {
		return nil, err
	}
	const megabytes = 4096 // never begin a new one
	return []string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + c.AuditLog(), fmt.Sprintf("--audit-log-maxsize=%d", megabytes),
	}, nil
}

// insecureLocal does not verify the certificate that a component on the loopback interface made for itself. Its callers
// read only "ok".
func insecureLocal() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
		DisableKeepAlives: true,
	}}
}

func (c *ControlPlane) controllerManager() (*managed, error) {
	port, err := allPorts.next()
	if err != nil {
		return nil, err
	}
	args := []string{"kube-controller-manager",
		"--kubeconfig=" + c.Kubeconfig(ControllerManagerIdentity),
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", port),
		"--leader-elect=false",
		// Each controller under the service account that Kubernetes gives it.
		"--use-service-account-credentials=true",
		// Controllers that jobs need. There is no node life cycle, because the nodes of KWOK send no heartbeats. A pod whose
		// last finalizer is removed while etcd disappears stays, terminating. If it has no node, only the collector of pods
		// deletes it.
		"--controllers=job-controller,garbage-collector-controller,pod-garbage-collector-controller,namespace-controller," +
			"ttl-after-finished-controller,serviceaccount-controller,clusterrole-aggregation-controller",
		// The job controller is the bottleneck of a burst with its defaults (5 workers, 20 requests/s).
		"--concurrent-job-syncs=50",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
		"--profiling=false",
	}
	m, err := c.managed(ControllerManager, controlPlaneBinary, append(args, c.opts.ControllerManagerArgs...)...)
	if err != nil {
		return nil, err
	}
	m.ready = httpOK(insecureLocal(), "https://"+hostPort(port)+"/healthz", "")
	return m, nil
}
