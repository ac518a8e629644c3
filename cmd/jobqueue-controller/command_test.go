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
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config/controller/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/watchdog"
)

func configuration(t *testing.T, args ...string) (*v1alpha1.ControllerConfiguration, error) {
	t.Helper()
	o := &runOptions{}
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.addFlags(fs)
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "")
	require.NoError(t, fs.Parse(args))
	return o.configuration(fs)
}

func TestConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		require.NoError(t,
			os.WriteFile(file, []byte("apiVersion: config.koord-queue/v1alpha1\nkind: ControllerConfiguration\n"+text), 0o600))
	}
	c, err := configuration(t)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.Default(), c)

	write("metricsBindAddress: \":1\"\nleaderElection: {leaderElect: false}\n")
	c, err = configuration(t, "--config="+file)
	require.NoError(t, err)
	require.Equal(t, ":1", c.MetricsBindAddress, "a flag that was not given leaves the file alone")
	require.False(t, *c.LeaderElection.LeaderElect)

	c, err = configuration(t, "--config="+file, "--metrics-bind-address=0", "--leader-elect",
		"--queue-namespace=q", "--kubeconfig=k")
	require.NoError(t, err)
	require.Equal(t, "0", c.MetricsBindAddress)
	require.True(t, *c.LeaderElection.LeaderElect)
	require.Equal(t, "q", c.QueueNamespace)
	require.Equal(t, "q", c.LeaderElection.ResourceNamespace, "the Lease is where the queues are, unless told otherwise")
	require.Equal(t, "k", c.ClientConnection.Kubeconfig)

	write("metricsSecure: false\n")
	c, err = configuration(t, "--config="+file)
	require.NoError(t, err)
	require.False(t, *c.MetricsSecure)
	c, err = configuration(t, "--config="+file, "--metrics-secure")
	require.NoError(t, err)
	require.True(t, *c.MetricsSecure)
	write("metricsCertDir: d\n")
	_, err = configuration(t, "--config="+file, "--metrics-secure=false")
	require.ErrorContains(t, err, "metricsCertDir")

	write("featureGates: {AdmissionChecks: false}\n")
	c, err = configuration(t, "--config="+file)
	require.NoError(t, err)
	require.Equal(t, map[string]bool{"AdmissionChecks": false}, c.FeatureGates)
	write("featureGates: {AdmissionCheck: false}\n")
	_, err = configuration(t, "--config="+file)
	require.ErrorContains(t, err, `featureGates: Unsupported value: "AdmissionCheck": `+
		`supported values: "AdmissionChecks", "PartialAdmission"`)

	write("metricBindAddress: \":1\"\n")
	_, err = configuration(t, "--config="+file)
	require.ErrorContains(t, err, "metricBindAddress")
	_, err = configuration(t, "--config="+file+".missing")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = configuration(t, "--queue-namespace=A_")
	require.ErrorContains(t, err, "queueNamespace")
}

// A certificate that was asked for and is not there is an error: clients that verify it would be turned away.
func TestTheCertificateOfMetrics(t *testing.T) {
	c := v1alpha1.Default()
	o, err := metricsOptions(c)
	require.NoError(t, err)
	require.True(t, o.SecureServing)
	require.NotNil(t, o.FilterProvider)
	require.Empty(t, o.CertDir)
	c.MetricsCertDir = t.TempDir()
	_, err = metricsOptions(c)
	require.ErrorIs(t, err, os.ErrNotExist)
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(c.MetricsCertDir, "tls.crt"), cert, 0o600))
	_, err = metricsOptions(c)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(c.MetricsCertDir, "tls.key"), key, 0o600))
	o, err = metricsOptions(c)
	require.NoError(t, err)
	require.Equal(t, c.MetricsCertDir, o.CertDir)
	c = v1alpha1.Default()
	*c.MetricsSecure = false
	o, err = metricsOptions(c)
	require.NoError(t, err)
	require.False(t, o.SecureServing)
	require.Nil(t, o.FilterProvider)
}

// A leader with the shipped configuration is paused for longer than the time to renew its lease. Afterwards it sends
// nothing and ends.
func TestALeaderThatStoodStillSendsNothing(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	ended := make(chan int, 1)
	defer func(exit func(int)) { klog.OsExit = exit }(klog.OsExit)
	klog.OsExit = func(code int) { ended <- code }
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	c, config := v1alpha1.Default(), &rest.Config{Host: server.URL}
	dog := newWatchdog(config, &c.LeaderElection, clk)
	sender, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	send := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, server.URL, http.NoBody)
		require.NoError(t, err)
		response, err := sender.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	clk.Step(time.Hour)
	require.NoError(t, send(), "it does not lead yet")
	require.NoError(t, whileLeading(dog)(t.Context()))
	require.NoError(t, send())
	clk.Step(c.LeaderElection.RenewDeadline.Duration + time.Second)
	require.ErrorIs(t, send(), watchdog.ErrStoodStill)
	require.Equal(t, 1, <-ended)
}

func TestStopped(t *testing.T) {
	failed := errors.New("failed")
	require.ErrorIs(t, stopped(context.Background(), failed), failed)
	ctx, stop := context.WithCancel(context.Background())
	stop()
	require.NoError(t, stopped(ctx, ctx.Err()))
	require.ErrorIs(t, stopped(ctx, failed), failed)
}

func TestMissingAPIs(t *testing.T) {
	missing := func(serves map[string][]string) string {
		t.Helper()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			paths := map[string]any{}
			for path, resources := range serves {
				paths["apis/"+path] = map[string]any{"serverRelativeURL": "/openapi/v3/apis/" + path + "?hash=1"}
				if r.URL.Path != "/openapi/v3" {
					delete(paths, "apis/"+path)
				}
				for _, resource := range resources {
					if strings.HasSuffix(r.URL.Path, path) {
						paths["/apis/"+path+"/"+resource] = map[string]any{}
					}
				}
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"openapi": "3.0.0", "paths": paths})
		}))
		defer server.Close()
		index, err := served.New(&rest.Config{Host: server.URL}, clock.RealClock{})
		require.NoError(t, err)
		require.Contains(t, missingAPIs(index), "does not answer")
		require.NoError(t, index.Look())
		return missingAPIs(index)
	}
	all := map[string][]string{
		"scheduling.x-k8s.io/v1alpha1":    {"queues", "queueunits", "queueunits/{name}/status"},
		"scheduling.sigs.k8s.io/v1alpha1": {"elasticquotas"},
	}
	require.Empty(t, missing(all))
	delete(all, "scheduling.sigs.k8s.io/v1alpha1")
	require.Equal(t, "CRD elasticquotas of scheduling.sigs.k8s.io/v1alpha1 (install Koordinator)", missing(all))
	require.Contains(t, missing(map[string][]string{"scheduling.x-k8s.io/v1alpha1": {"queues"}}),
		"CRD queueunits of scheduling.x-k8s.io/v1alpha1 (kubectl apply -k manifests/base/crd); CRD elasticquotas")
}
