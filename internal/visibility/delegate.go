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
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/sight"
)

const (
	// authenticationConfigMap, in kube-system, says by which certificate the API server is known, and in which headers it
	// passes on who asks.
	authenticationConfigMap = "extension-apiserver-authentication"
	reviewTimeout           = 10 * time.Second
	// cacheTTL of what the API server said about tokens and rights.
	cacheTTL = 10 * time.Second
)

// authenticate has the API server say who asks. A client whose identity is not known is refused.
//
// DelegatingAuthenticationOptions of the library does the same from the path of a kubeconfig; the scheduler has a
// configuration instead.
func authenticate(
	ctx context.Context, client kubernetes.Interface, to *server.AuthenticationInfo, serving *server.SecureServingInfo,
) error {
	clientCA, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", metav1.NamespaceSystem,
		authenticationConfigMap, "client-ca-file", client)
	if err != nil {
		return err
	}
	proxy, err := requestHeader(ctx, client)
	if err != nil {
		return fmt.Errorf("read %s in %s: %w", authenticationConfigMap, metav1.NamespaceSystem, err)
	}
	for _, ca := range []dynamiccertificates.CAContentProvider{clientCA, proxy.CAContentProvider} {
		if err := to.ApplyClientCert(ca, serving); err != nil {
			return err
		}
	}
	to.RequestHeaderConfig = proxy
	to.Authenticator, _, err = authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient: client.AuthenticationV1(), TokenAccessReviewTimeout: reviewTimeout,
		WebhookRetryBackoff: options.DefaultAuthWebhookRetryBackoff(), CacheTTL: cacheTTL,
		ClientCertificateCAContentProvider: clientCA, RequestHeaderConfig: proxy,
	}.New()
	return err
}

func requestHeader(
	ctx context.Context, client kubernetes.Interface,
) (*authenticatorfactory.RequestHeaderConfig, error) {
	ca, err := dynamiccertificates.NewDynamicCAFromConfigMapController("request-header-ca", metav1.NamespaceSystem,
		authenticationConfigMap, "requestheader-client-ca-file", client)
	if err != nil {
		return nil, err
	}
	headers := headerrequest.NewRequestHeaderAuthRequestController(authenticationConfigMap, metav1.NamespaceSystem,
		client, "requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers",
		"requestheader-extra-headers-prefix", "requestheader-allowed-names")
	both := &options.DynamicRequestHeaderController{
		ConfigMapCAController: ca, RequestHeaderAuthRequestController: headers,
	}
	if err := both.RunOnce(ctx); err != nil {
		return nil, err
	}
	return &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   both,
		UsernameHeaders:     headerrequest.StringSliceProviderFunc(both.UsernameHeaders),
		UIDHeaders:          headerrequest.StringSliceProviderFunc(both.UIDHeaders),
		GroupHeaders:        headerrequest.StringSliceProviderFunc(both.GroupHeaders),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(both.ExtraHeaderPrefixes),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(both.AllowedClientNames),
	}, nil
}

// sightOf has the API server say where users may list units. Its many reviews take no turns and no memory of others.
func sightOf(o *Options) (*sight.Sight, error) {
	config := rest.CopyConfig(o.Client)
	config.QPS, config.Burst = -1, 0 // its own bounds are lower
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	reviews, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(), WebhookRetryBackoff: options.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, err
	}
	return sight.New(union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), reviews), o.Clock), nil
}

// authorize has the API server say who may, but for its own probes and those of the kubelet.
func authorize(client kubernetes.Interface) (authorizer.Authorizer, error) {
	probes, err := path.NewAuthorizer([]string{"/healthz", "/livez", "/readyz"})
	if err != nil {
		return nil, err
	}
	reviews, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             cacheTTL, DenyCacheTTL: cacheTTL,
		WebhookRetryBackoff: options.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, err
	}
	return union.New(authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup), probes, reviews), nil
}
