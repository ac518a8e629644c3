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

// Package webserver has the command jobqueue-web: the page for many people, in a cluster. It has no rights of its own.
// A proxy in front logs people in, and adds the bearer token of the caller to each request.
package webserver

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/page"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/callers"
)

// patience bounds the time to find out who has a token.
const patience = 5 * time.Second

// Options of the command.
type Options struct {
	Plugin page.Plugin

	listen                 string
	hosts                  []string
	certificate, key       string
	apiServer, authorities string
	names                  doctor.Names
}

// Command is the command. The plugin is all that the page uses of kubectl jobqueue.
func Command(plugin page.Plugin) *cobra.Command {
	o := &Options{Plugin: plugin}
	cmd := &cobra.Command{
		Use:   "jobqueue-web",
		Short: "Serves the page of the job queue to many people",
		Long: `jobqueue-web serves the page of kubectl jobqueue web in a cluster, behind a proxy that logs people in. The
proxy adds the bearer token of the caller to each request. The API server says who the caller is and what the caller
may do.

The process has no rights of its own. Without a token a request gets no content.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

// AddFlags adds the flags, and sets what the options are without one.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.listen, "listen", "127.0.0.1:8443",
		"host:port of the page; without a certificate of the loopback only")
	fs.StringSliceVar(&o.hosts, "host", nil, "name by which browsers or the proxy call the server; can be repeated. "+
		"A request for another name is refused")
	fs.StringVar(&o.certificate, "tls-cert-file", "",
		"file with the certificate of the server, read again when it changes")
	fs.StringVar(&o.key, "tls-private-key-file", "", "file with the key of the certificate")
	fs.StringVar(&o.apiServer, "api-server", inCluster(),
		"URL of the API server; the default is that of the cluster of the pod")
	fs.StringVar(&o.authorities, "certificate-authority", "", "file with the certificate authorities of the API server; "+
		"without one, those of the system")
	o.names.AddFlags(fs)
}

// inCluster is the API server of the cluster of a pod; empty outside of a pod.
func inCluster() string {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return ""
	}
	return "https://" + net.JoinHostPort(host, port)
}

func (o *Options) run(ctx context.Context) error {
	shared, err := o.Listen(ctx)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Serving the page", "address", shared.Address(), "hosts", o.hosts)
	return shared.Serve(ctx)
}

// Listen returns a server that waits to be served. The certificate is followed until the context ends.
func (o *Options) Listen(ctx context.Context) (*web.Shared, error) {
	if o.apiServer == "" {
		return nil, errors.New("want the URL of the API server: --api-server")
	}
	options := web.SharedOptions{Address: o.listen, Hosts: o.hosts, Clock: clock.RealClock{}, Open: o.open}
	if o.certificate != "" || o.key != "" {
		watcher, err := certwatcher.New(o.certificate, o.key)
		if err != nil {
			return nil, err
		}
		go func() {
			if err := watcher.Start(ctx); err != nil {
				klog.FromContext(ctx).Error(err, "The certificate is not followed")
			}
		}()
		options.Certificate = watcher.GetCertificate
	}
	return web.ListenShared(ctx, options)
}

// connection is that of the caller who has a token: as a client configuration, and as flags of a command. No kubeconfig
// of this machine adds to it.
func (o *Options) connection(token string) (*rest.Config, []string) {
	config := &rest.Config{
		Host: o.apiServer, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAFile: o.authorities},
		UserAgent: "jobqueue-web",
	}
	return config, []string{"--kubeconfig=" + os.DevNull, "--server=" + o.apiServer,
		"--certificate-authority=" + o.authorities, "--token=" + token}
}

// open asks the API server who has a token.
func (o *Options) open(ctx context.Context, token string) (*callers.Caller, error) {
	config, flags := o.connection(token)
	client, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	name := review.Status.UserInfo.Username
	source, err := o.Plugin.Source(config, "", o.names, flags)
	if err != nil {
		return nil, err
	}
	if account, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		source.Of, _, _ = strings.Cut(account, ":")
	} else if units, err := source.Reader.UnitsPage(ctx, "", "", "", 1, ""); err == nil && len(units.Items) > 0 {
		source.Of = units.Items[0].Namespace
	}
	return &callers.Caller{Name: name, Source: source}, nil
}
