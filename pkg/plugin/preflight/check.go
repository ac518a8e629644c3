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

package preflight

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// requestTimeout bounds one request, so that a silent API server is reported like one that is down.
	requestTimeout = 10 * time.Second
	firstPause     = time.Second
	longestPause   = 10 * time.Second
)

// Checker looks for what a setup needs.
type Checker struct {
	Setup   Setup
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Host is the API server, for messages.
	Host  string
	Out   io.Writer
	Clock clock.Clock
}

// NewChecker builds a checker with clients of its own. They ask for JSON: not every API server knows how to encode a
// custom resource otherwise.
func NewChecker(setup Setup, cfg *rest.Config, out io.Writer) (*Checker, error) {
	cfg = rest.AddUserAgent(rest.CopyConfig(cfg), "preflight")
	cfg.ContentType, cfg.AcceptContentTypes = "application/json", "application/json"
	cfg.Timeout = requestTimeout
	cfg.QPS, cfg.Burst = 100, 100
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &Checker{Setup: setup, Kube: kube, Dynamic: dyn, Host: cfg.Host, Out: out, Clock: clock.RealClock{}}, nil
}

// Wait returns nil as soon as nothing is missing, and the context's error when it ends. It writes one line for
// everything that is found missing and one when it is there.
func (c *Checker) Wait(ctx context.Context) error {
	var waiting []string
	pause := firstPause
	for {
		missing := c.missing(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		if !slices.Equal(missing, waiting) {
			c.report(waiting, missing)
			waiting, pause = missing, firstPause
		}
		if len(missing) == 0 {
			return nil
		}
		timer := c.Clock.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C():
		}
		pause = min(2*pause, longestPause)
	}
}

func (c *Checker) report(before, after []string) {
	for _, line := range before {
		if !slices.Contains(after, line) {
			fmt.Fprintf(c.Out, "no longer waiting for: %s\n", line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			fmt.Fprintf(c.Out, "waiting for: %s\n", line)
		}
	}
}

// missing lists what is not there, each with how to get it. If the API server does not answer it is all that is listed.
func (c *Checker) missing(ctx context.Context) []string {
	var missing []string
	for _, n := range c.Setup.needs() {
		line, err := c.check(ctx, n)
		if err != nil {
			return []string{fmt.Sprintf("the API server at %s: %v", c.Host, err)}
		}
		if line != "" {
			missing = append(missing, line)
		}
	}
	return missing
}

func (c *Checker) check(ctx context.Context, n need) (string, error) {
	if n.namespace != "" {
		_, err := c.Kube.CoreV1().Namespaces().Get(ctx, n.namespace, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("namespace %s (%s)", n.namespace, n.get), nil
		case apierrors.IsForbidden(err), err == nil:
			// Without the right to read it nothing is known, and the scheduler itself does not read it.
			return "", nil
		}
		return "", err
	}
	_, err := c.Dynamic.Resource(n.resource).List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Sprintf("CRD %s (%s)", n.resource.GroupResource(), n.get), nil
	case apierrors.IsForbidden(err):
		return c.noRight(n, "list", ""), nil
	case err != nil:
		return "", err
	}
	for _, a := range append([]access{{verb: "watch"}}, n.writes...) {
		allowed, err := c.allowed(ctx, n, a)
		if err != nil {
			return "", err
		}
		if !allowed {
			return c.noRight(n, a.verb, a.subresource), nil
		}
	}
	return "", nil
}

func (c *Checker) noRight(n need, verb, subresource string) string {
	resource := n.resource.GroupResource().String()
	if subresource != "" {
		resource = n.resource.Resource + "/" + subresource + "." + n.resource.Group
	}
	return fmt.Sprintf("the right to %s %s (%s)", verb, resource, getRights)
}

func (c *Checker) allowed(ctx context.Context, n need, a access) (bool, error) {
	review, err := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().
		Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb:        a.verb,
				Group:       n.resource.Group,
				Version:     n.resource.Version,
				Resource:    n.resource.Resource,
				Subresource: a.subresource,
			}},
		}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		// The question is refused, so nothing is known to be missing.
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
