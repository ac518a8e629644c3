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

package webserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/cert"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli"
)

// apiServer knows some tokens, and remembers which it was shown.
type apiServer struct {
	lock  sync.Mutex
	shown map[string]bool
	users map[string]string
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.lock.Lock()
	defer a.lock.Unlock()
	given := r.Header.Get("Authorization")
	a.shown[given+r.Header.Get("Impersonate-User")] = true
	user, known := a.users[given]
	var answer any
	switch {
	case !known:
		answer = &apierrors.NewUnauthorized("Unauthorized").ErrStatus
	case r.URL.Path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		answer = &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{
			UserInfo: authenticationv1.UserInfo{Username: user},
		}}
	case r.URL.Path == "/apis/visibility.koord-queue.x-k8s.io/v1alpha1/visibleunits" && user == "rose":
		answer = &visibility.UnitList{
			TypeMeta: metav1.TypeMeta{Kind: "UnitList", APIVersion: visibility.SchemeGroupVersion.String()},
			Items:    []visibility.Unit{{ObjectMeta: metav1.ObjectMeta{Namespace: "red", Name: "job-a"}}},
		}
	default:
		answer = &apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil).ErrStatus
	}
	w.Header().Set("Content-Type", "application/json")
	if status, ok := answer.(*metav1.Status); ok {
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.WriteHeader(int(status.Code))
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// options are those of a server whose API server is a, with flags.
func options(t *testing.T, a *apiServer) *Options {
	t.Helper()
	server := httptest.NewTLSServer(a)
	t.Cleanup(server.Close)
	authorities := filepath.Join(t.TempDir(), "ca.crt")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(authorities, text, 0o600))
	o := &Options{Plugin: cli.Plugin()}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	require.NoError(t, flags.Parse([]string{"--api-server=" + server.URL, "--certificate-authority=" + authorities}))
	return o
}

// The namespace of an account is in its name. That of a person is one whose units the person may see.
func TestOpen(t *testing.T) {
	a := &apiServer{shown: map[string]bool{}, users: map[string]string{
		"Bearer t-rose": "rose", "Bearer t-new": "new", "Bearer t-bot": "system:serviceaccount:blue:bot",
	}}
	o := options(t, a)
	for token, want := range map[string]struct{ name, namespace string }{
		"t-rose": {"rose", "red"}, "t-new": {"new", ""}, "t-bot": {"system:serviceaccount:blue:bot", "blue"},
	} {
		c, err := o.open(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, want.name, c.Name)
		require.Equal(t, want.namespace, c.Source.Namespace())
	}
	_, err := o.open(t.Context(), "t-forged")
	require.True(t, apierrors.IsUnauthorized(err), err)
	require.NotContains(t, err.Error(), "t-forged")
	o.apiServer = "https://127.0.0.1:1"
	_, err = o.open(t.Context(), "t-rose")
	require.ErrorContains(t, err, "connect")
	require.NotContains(t, err.Error(), "t-rose")
}

// Questions and buttons show the token of the caller, and nothing of a kubeconfig of the machine.
func TestNothingElseIsShown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: v1
kind: Config
current-context: own
contexts: [{name: own, context: {cluster: own, user: own, namespace: own}}]
clusters: [{name: own, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: own, user: {token: own, as: root}}]
`), 0o600))
	t.Setenv("KUBECONFIG", file)
	a := &apiServer{shown: map[string]bool{}, users: map[string]string{"Bearer t-rose": "rose"}}
	c, err := options(t, a).open(t.Context(), "t-rose")
	require.NoError(t, err)
	_, err = c.Source.Quotas(t.Context(), "")
	require.True(t, apierrors.IsForbidden(err), err)
	_, err = c.Source.Findings(t.Context())
	require.NoError(t, err)
	_, err = c.Source.Run(t.Context(), "hold", "job/a", "--namespace=red")
	require.ErrorContains(t, err, "forbidden")
	require.NotContains(t, err.Error(), "t-rose")
	require.Equal(t, map[string]bool{"Bearer t-rose": true}, a.shown)
}

// The server has the certificate of its files.
func TestServesTLS(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	crt, private, err := cert.GenerateSelfSignedCertKey("queue.example.com", nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(certificate, crt, 0o600))
	require.NoError(t, os.WriteFile(key, private, 0o600))
	o := options(t, &apiServer{shown: map[string]bool{}, users: map[string]string{"Bearer t-new": "new"}})
	o.listen, o.hosts, o.certificate, o.key = "127.0.0.1:0", []string{"queue.example.com"}, certificate, key
	ctx, stop := context.WithCancel(context.Background())
	shared, err := o.Listen(ctx)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- shared.Serve(ctx) }()
	defer func() {
		stop()
		require.NoError(t, <-served)
	}()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(crt))
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "queue.example.com", MinVersion: tls.VersionTLS12},
	}}
	defer client.CloseIdleConnections()
	for token, want := range map[string]int{"": http.StatusUnauthorized, "t-new": http.StatusForbidden} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			"https://"+shared.Address().String()+"/quotas", nil)
		require.NoError(t, err)
		request.Host = "queue.example.com"
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, want, response.StatusCode)
	}
}

func TestListen(t *testing.T) {
	o := options(t, &apiServer{})
	for want, flags := range map[string][]string{
		"--api-server":       {"--api-server="},
		"--host":             {},
		"want a certificate": {"--host=a", "--listen=:0"},
		"no such file":       {"--host=a", "--listen=:0", "--tls-cert-file=/none/tls.crt"},
	} {
		other := *o
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		other.AddFlags(fs)
		require.NoError(t, fs.Parse(append([]string{"--api-server=" + o.apiServer}, flags...)))
		_, err := other.Listen(t.Context())
		require.ErrorContains(t, err, want)
	}
}
