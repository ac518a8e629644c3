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

package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// Both processes ask the API server who reads their metrics, and whether he may.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	c := start(t, "metrics", controlplane.Options{})
	require.NoError(t, c.StartScheduler(t.Context(), controlplane.SchedulerOptions{}))
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{MetricsSecure: true}))
	ns := c.namespace(t, "monitoring")
	prometheus, nobody := c.account(t, ns, "prometheus"), c.account(t, ns, "nobody")
	_, err := c.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "jobqueue-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: "prometheus"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	for component, want := range map[controlplane.Component]struct{ none, forged int }{
		// kube-scheduler takes a caller without a token for system:anonymous.
		controlplane.Scheduler: {http.StatusForbidden, http.StatusUnauthorized},
		// controller-runtime says 500 of a token that the API server does not know.
		controlplane.Controller: {http.StatusUnauthorized, http.StatusInternalServerError},
	} {
		url := c.SecureURL(component) + "/metrics"
		require.Eventually(t, func() bool { return statusOf(t, url, prometheus) == http.StatusOK }, soon, pace,
			"%s: it serves, and the binding has reached the API server", component)
		require.Equal(t, http.StatusForbidden, statusOf(t, url, nobody), component)
		require.Equal(t, want.none, statusOf(t, url, ""), component)
		require.Equal(t, want.forged, statusOf(t, url, "forged"), component)
	}
	require.Equal(t, http.StatusOK, statusOf(t, c.SecureURL(controlplane.Scheduler)+"/healthz", ""),
		"a probe has no token")
	plain := "http" + strings.TrimPrefix(c.SecureURL(controlplane.Controller), "https") + "/metrics"
	require.Equal(t, http.StatusBadRequest, statusOf(t, plain, prometheus), "nothing is said without TLS")
	require.Error(t, verified(t, c.SecureURL(controlplane.Controller), nil), "it signs its certificate itself")

	require.NoError(t, c.StopComponent(controlplane.Controller))
	dir := t.TempDir()
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, corev1.TLSCertKey), cert, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, corev1.TLSPrivateKeyKey), key, 0o600))
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{
		MetricsSecure: true, Config: map[string]any{"metricsCertDir": dir},
	}))
	url := c.SecureURL(controlplane.Controller)
	require.Eventually(t, func() bool { return statusOf(t, url+"/metrics", prometheus) == http.StatusOK }, soon, pace)
	require.NoError(t, verified(t, url, cert))
}

// verified says what is wrong with the certificate of a server, for a client that trusts this one.
func verified(t *testing.T, url string, trusted []byte) error {
	t.Helper()
	roots := x509.NewCertPool()
	require.Equal(t, trusted != nil, roots.AppendCertsFromPEM(trusted))
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
	if err != nil {
		return err
	}
	return connection.Close()
}

// account makes a service account and returns a token of it.
func (c *cluster) account(t *testing.T, namespace, name string) string {
	t.Helper()
	accounts := c.kube.CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return token.Status.Token
}

// statusOf a GET with this token, none if it is empty; 0 if nobody answers.
func statusOf(t *testing.T, url, token string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the server signs its certificate itself
	}}
	response, err := client.Do(request)
	if err != nil {
		t.Log(err)
		return 0
	}
	defer response.Body.Close()
	return response.StatusCode
}
