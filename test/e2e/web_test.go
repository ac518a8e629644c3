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
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/webserver"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// many is the page of a cluster, without the proxy.
type many struct {
	*testing.T
	base string
}

// many serves the page to callers of the cluster. It has the address of the API server, and no rights.
func (c *cluster) many(t *testing.T) many {
	t.Helper()
	admin := c.RESTConfig(controlplane.Admin)
	authorities := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(authorities, admin.CAData, 0o600))
	o := &webserver.Options{Plugin: cli.Plugin()}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	require.NoError(t, flags.Parse([]string{"--api-server=" + admin.Host, "--certificate-authority=" + authorities,
		"--listen=127.0.0.1:0", "--host=127.0.0.1"}))
	ctx, stop := context.WithCancel(context.Background())
	shared, err := o.Listen(ctx)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- shared.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-served)
	})
	return many{t, "http://" + shared.Address().String()}
}

// ask for a page with a token, none if it is empty; a form is sent if there is one.
func (m many) ask(token, path string, form ...string) (status int, text string) {
	m.Helper()
	method, body := http.MethodGet, ""
	if len(form) > 0 {
		method, body = http.MethodPost, form[0]
	}
	request, err := http.NewRequestWithContext(m.Context(), method, m.base+path, strings.NewReader(body))
	require.NoError(m, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(m, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(m, err)
	if token != "" {
		require.NotContains(m, string(raw), token, path)
	}
	return response.StatusCode, string(raw)
}

// see is a page with a status.
func (m many) see(token, path string, want int, form ...string) string {
	m.Helper()
	status, text := m.ask(token, path, form...)
	require.Equal(m, want, status, "%s\n%s", path, text)
	return text
}

// showsMany holds that the page in the cluster shows and changes only what the token of a request may.
func (c *cluster) showsMany(t *testing.T, red string) {
	c.bind(t, "system:serviceaccount:"+red+":member", "edit", red)
	c.bind(t, "system:serviceaccount:"+red+":guest", "view", red)
	c.bind(t, "system:serviceaccount:default:boss", "jobqueue-operator", "")
	member, guest, boss := c.account(t, red, "member"), c.account(t, red, "guest"), c.account(t, "default", "boss")
	m := c.many(t)
	second := "/jobs/" + url.PathEscape(red) + "/" + url.PathEscape(c.unit(t, red, "second").Name)
	for token, path := range map[string]string{member: second, guest: second, boss: "/queues/shared"} {
		require.Eventually(t, func() bool { // the API server knows new rights after a moment
			status, _ := m.ask(token, path)
			return status == http.StatusOK
		}, soon, pace)
	}

	text := m.see(boss, "/queues/shared", http.StatusOK)
	for _, job := range []string{"blue/secret", "red/second", "blue/hidden"} {
		require.Contains(t, text, ">"+job+"</a>")
	}
	for _, path := range []string{"/quotas", "/queues/shared", "/history", "/search?q=e"} {
		text := m.see(member, path, http.StatusOK)
		for _, name := range []string{"secret", "/hidden", "blue"} {
			require.NotContains(t, text, name, path)
		}
	}
	require.Contains(t, m.see(member, "/quotas", http.StatusOK), "You may read namespace red.")
	require.Contains(t, m.see(member, "/queues/shared", http.StatusOK), ">red/second</a>")
	m.see(member, "/quotas?mine=blue", http.StatusForbidden)
	m.see(member, "/jobs/blue/secret", http.StatusForbidden)
	require.Contains(t, m.see(boss, "/jobs/blue/secret", http.StatusOK), "QuotaExceeded")

	require.Contains(t, m.see(guest, second, http.StatusOK, "verb=hold"), "forbidden")
	require.Contains(t, m.see(member, second, http.StatusOK, "verb=hold"), "job/second")
	c.waitReason(t, red, "second", "HeldByOwner")
	m.see(member, second, http.StatusOK, "verb=release")
	c.waitReason(t, red, "second", "QuotaExceeded")

	require.Contains(t, m.see("", "/quotas", http.StatusUnauthorized), "Log in first")
	require.Contains(t, m.see("", second, http.StatusUnauthorized, "verb=hold"), "Log in first")
	forged := m.see(member[:len(member)-8]+"AAAAAAAA", "/quotas", http.StatusForbidden)
	require.Contains(t, forged, "The cluster does not know you")
	require.NotContains(t, forged, "second")
}
