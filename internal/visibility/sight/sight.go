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

// Package sight finds the namespaces whose units a user may list. It asks the authorizer about each namespace, at
// most so many times a second, and keeps the answers for some seconds.
package sight

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/limiter"
)

// Bounds of the reviews. A tenant is a user, or all service accounts of a namespace.
const (
	// ofOnePerSecond and burstOfOne bound the reviews for one tenant, perSecond and burst those for all.
	ofOnePerSecond = 100
	burstOfOne     = 2000
	perSecond      = 500
	burst          = 8000
	// atATime is the number of reviews of one request that are made at once.
	atATime = 8
	// keptFor is the time for which an answer counts, and mostKept the number of answers.
	keptFor  = 10 * time.Second
	mostKept = 1 << 15
	// manyTenants is the number of tenants from which on idle ones are forgotten.
	manyTenants = 1000
)

// Sight knows who may list units where.
type Sight struct {
	authorizer authorizer.Authorizer
	clock      clock.Clock
	kept       *cache.LRUExpireCache // answers by view

	mu      sync.Mutex
	all     *rate.Limiter
	tenants map[string]*rate.Limiter
}

// view is a user with all that rights may depend on, and a namespace; empty is all namespaces.
type view struct{ user, namespace string }

// New returns a Sight that has asked nothing.
func New(a authorizer.Authorizer, c clock.Clock) *Sight {
	return &Sight{
		authorizer: a, clock: c, kept: cache.NewLRUExpireCacheWithClock(mostKept, c),
		all: rate.NewLimiter(perSecond, burst), tenants: map[string]*rate.Limiter{},
	}
}

// Everywhere says whether a user may list the units of all namespaces.
func (s *Sight) Everywhere(ctx context.Context, u user.Info) (bool, error) {
	return s.may(ctx, u, view{identity(u), ""})
}

// Among are those of some namespaces in which a user may list units, in their order. A user for whom too many reviews
// were made gets an error that says when to ask again.
func (s *Sight) Among(ctx context.Context, u user.Info, namespaces []string) ([]string, error) {
	who := identity(u)
	sees := make([]bool, len(namespaces))
	reviews, ctx := errgroup.WithContext(ctx)
	reviews.SetLimit(atATime)
	for i, namespace := range namespaces {
		reviews.Go(func() (err error) {
			sees[i], err = s.may(ctx, u, view{who, namespace})
			return err
		})
	}
	if err := reviews.Wait(); err != nil {
		return nil, err
	}
	visible := []string{}
	for i, namespace := range namespaces {
		if sees[i] {
			visible = append(visible, namespace)
		}
	}
	return visible, nil
}

func (s *Sight) may(ctx context.Context, u user.Info, v view) (bool, error) {
	if answer, known := s.kept.Get(v); known {
		return answer.(bool), nil
	}
	if !s.allow(tenantOf(u)) {
		return false, apierrors.NewTooManyRequests("too many reviews of rights", limiter.ComeBack)
	}
	decision, _, err := s.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: u, Verb: "list", Namespace: v.namespace, APIGroup: v1alpha1.GroupName,
		APIVersion: v1alpha1.SchemeGroupVersion.Version, Resource: "units", ResourceRequest: true,
	})
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("review of rights: %w", err))
	}
	s.kept.Add(v, decision == authorizer.DecisionAllow, keptFor)
	return decision == authorizer.DecisionAllow, nil
}

// allow says whether one more review may be made for a tenant.
func (s *Sight) allow(tenant string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	of, known := s.tenants[tenant]
	if !known {
		if len(s.tenants) >= manyTenants {
			for other, idle := range s.tenants {
				if idle.TokensAt(now) >= burstOfOne {
					delete(s.tenants, other)
				}
			}
		}
		of = rate.NewLimiter(ofOnePerSecond, burstOfOne)
		s.tenants[tenant] = of
	}
	return of.AllowN(now, 1) && s.all.AllowN(now, 1)
}

// tenantOf a user: a tenant can make any number of service accounts in its namespace.
func tenantOf(u user.Info) string {
	if account, is := strings.CutPrefix(u.GetName(), "system:serviceaccount:"); is {
		namespace, _, _ := strings.Cut(account, ":")
		return "system:serviceaccount:" + namespace
	}
	return u.GetName()
}

func identity(u user.Info) string {
	return fmt.Sprintf("%q %q %q %q", u.GetName(), u.GetUID(), u.GetGroups(), u.GetExtra())
}
