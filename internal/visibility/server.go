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

package visibility

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"path/filepath"
	"time"

	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/holders"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/limiter"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/schemas"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/sight"
)

// Options say where and as whom the API is served.
type Options struct {
	BindAddress net.IP
	Port        int
	// CertDir has tls.crt and tls.key, which are read again when they change. If it is empty the server makes a
	// certificate for itself, which nobody can verify.
	CertDir string
	// Client is the identity that asks the API server who may read.
	Client *rest.Config
	Clock  clock.WithTicker
}

const (
	// maxInFlight bounds the requests of any kind, discovery and health included.
	maxInFlight = 100
	// requestTimeout is longer than that of a question.
	requestTimeout = 2 * limiter.Timeout
	// maxBody is far more than an Audit needs.
	maxBody = 16 << 10
	// retryAfter is the time between attempts to serve.
	retryAfter = 10 * time.Second
)

// Serve serves the API until the context ends. It tries again if there is no certificate yet, or if the API server does
// not let it read how to authenticate. Scheduling does not depend on it.
func Serve(ctx context.Context, o Options, r *Reader) {
	logger := klog.FromContext(ctx).WithName("visibility")
	go r.forecasts.memory.JudgeAgain(ctx, o.Clock, r.History, r.Metrics)
	for ctx.Err() == nil {
		err := serve(ctx, &o, r)
		if ctx.Err() != nil {
			return
		}
		logger.Error(err, "The visibility API is not served; trying again", "in", retryAfter, "port", o.Port)
		select {
		case <-ctx.Done():
		case <-o.Clock.After(retryAfter):
		}
	}
}

func serve(ctx context.Context, o *Options, r *Reader) error {
	s, err := newServer(ctx, o, r)
	if err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Serving the visibility API", "address", o.BindAddress, "port", o.Port)
	if err := s.PrepareRun().RunWithContext(ctx); err != nil {
		return err
	}
	return errors.New("the server ended")
}

func newServer(ctx context.Context, o *Options, r *Reader) (*server.GenericAPIServer, error) {
	client, err := kubernetes.NewForConfig(o.Client)
	if err != nil {
		return nil, err
	}
	cfg, err := newConfig(ctx, o, client)
	if err != nil {
		return nil, err
	}
	sees, err := sightOf(o)
	if err != nil {
		return nil, errors.Join(err, cfg.SecureServing.Listener.Close())
	}
	s, err := cfg.Complete(nil).New("koord-jobqueue-visibility", server.NewEmptyDelegate())
	if err == nil {
		r.MayRead = holders.Rights(cfg.Authorization.Authorizer)
		err = install(s, r, sees)
	}
	if err != nil {
		return nil, errors.Join(err, cfg.SecureServing.Listener.Close())
	}
	return s, nil
}

// newConfig is the last to fail: it listens when it returns.
func newConfig(ctx context.Context, o *Options, client kubernetes.Interface) (*server.Config, error) {
	cfg := server.NewConfig(codecs)
	cfg.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	cfg.PublicAddress = o.BindAddress
	// Metrics and profiles of this process are served elsewhere.
	cfg.EnableProfiling, cfg.EnableMetrics, cfg.EnableIndex = false, false, false
	cfg.MaxRequestsInFlight, cfg.MaxMutatingRequestsInFlight = maxInFlight, limiter.MaxAtATime
	// The API server asks any replica, and not the one that answered before: only the leader knows some things.
	cfg.GoawayChance = 1
	cfg.RequestTimeout, cfg.MaxRequestBodyBytes = requestTimeout, maxBody
	namer := openapi.NewDefinitionNamer(scheme)
	cfg.OpenAPIConfig = server.DefaultOpenAPIConfig(schemas.Definitions, namer)
	cfg.OpenAPIV3Config = server.DefaultOpenAPIV3Config(schemas.Definitions, namer)
	cfg.OpenAPIConfig.Info.Title, cfg.OpenAPIV3Config.Info.Title = "koord-jobqueue", "koord-jobqueue"

	var err error
	if cfg.Authorization.Authorizer, err = authorize(client); err != nil {
		return nil, err
	}
	serving, err := o.serving()
	if err != nil {
		return nil, err
	}
	if err := serving.ApplyTo(&cfg.SecureServing, &cfg.LoopbackClientConfig); err != nil {
		return nil, err
	}
	if err := authenticate(ctx, client, &cfg.Authentication, cfg.SecureServing); err != nil {
		return nil, errors.Join(err, cfg.SecureServing.Listener.Close())
	}
	return cfg, nil
}

func (o *Options) serving() (*options.SecureServingOptionsWithLoopback, error) {
	s := options.NewSecureServingOptions()
	s.BindAddress, s.BindPort = o.BindAddress, o.Port
	if o.CertDir == "" {
		s.ServerCert.CertDirectory = "" // in memory
		return s.WithLoopback(), s.MaybeDefaultWithSelfSignedCerts("localhost", nil, nil)
	}
	pair := &s.ServerCert.CertKey
	pair.CertFile, pair.KeyFile = filepath.Join(o.CertDir, "tls.crt"), filepath.Join(o.CertDir, "tls.key")
	_, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	return s.WithLoopback(), err
}

// install adds the resources to a server.
func install(s *server.GenericAPIServer, r *Reader, sees *sight.Sight) error {
	info := server.NewDefaultAPIGroupInfo(v1alpha1.GroupName, scheme, parameterCodec, codecs)
	info.VersionedResourcesStorageMap[v1alpha1.SchemeGroupVersion.Version] = resourcesOf(r, sees)
	return s.InstallAPIGroup(&info)
}
