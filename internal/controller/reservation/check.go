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

package reservation

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	koordinatorv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
)

// byUnit indexes Reservations by the unit that they were made for.
const byUnit = "unit"

func indexUnit(object client.Object) []string {
	if unit, ours := unitOf(object); ours {
		return []string{unit.String()}
	}
	return nil
}

// requestsOf asks the check of the unit again that a Reservation was made for.
func requestsOf(_ context.Context, object client.Object) []reconcile.Request {
	if unit, ours := unitOf(object); ours {
		return []reconcile.Request{{NamespacedName: unit}}
	}
	return nil
}

type checker struct {
	client client.Client
	kinds  []jobkind.Kind
	clock  clock.PassiveClock
}

// check is an admissioncheck.Func.
func (c *checker) check(
	ctx context.Context, unit *v1alpha1.QueueUnit, check *v1beta1.AdmissionCheck,
) (a admissioncheck.Answer, err error) {
	list, err := c.list(ctx, client.ObjectKeyFromObject(unit))
	if err != nil {
		return a, err
	}
	p := planFor(&observed{
		unit: unit, check: check.Name, kinds: c.kinds, reservations: list, now: c.clock.Now(),
	})
	for _, r := range p.delete {
		if err := c.remove(ctx, r); err != nil {
			return a, err
		}
	}
	for _, r := range p.create {
		// An existing Reservation is the right one: the cache is behind.
		if err := c.client.Create(ctx, r); err != nil && !apierrors.IsAlreadyExists(err) {
			return answerTo(err)
		}
	}
	return p.answer, nil
}

// answerTo an error of the API server: what it will never take is rejected.
func answerTo(err error) (admissioncheck.Answer, error) {
	if apierrors.IsInvalid(err) {
		return admissioncheck.Answer{
			State: admissioncheck.Rejected, Message: "no Reservation can be created: " + err.Error(),
		}, nil
	}
	return admissioncheck.Answer{}, err
}

func (c *checker) list(
	ctx context.Context, unit types.NamespacedName,
) ([]koordinatorv1alpha1.Reservation, error) {
	list := &koordinatorv1alpha1.ReservationList{}
	err := c.client.List(ctx, list, client.MatchingFields{byUnit: unit.String()})
	return list.Items, err
}

func (c *checker) remove(ctx context.Context, r *koordinatorv1alpha1.Reservation) error {
	err := c.client.Delete(ctx, r, client.Preconditions{UID: &r.UID})
	if apierrors.IsConflict(err) {
		return nil // another object has the name now
	}
	return client.IgnoreNotFound(err)
}

// idle is Controller.Idle.
func (c *checker) idle(ctx context.Context, unit *v1alpha1.QueueUnit) error {
	return c.gone(ctx, client.ObjectKeyFromObject(unit))
}

// gone is Controller.Gone: it deletes all Reservations of a unit, so that others can use the nodes.
func (c *checker) gone(ctx context.Context, unit types.NamespacedName) error {
	list, err := c.list(ctx, unit)
	for i := range list {
		if list[i].DeletionTimestamp == nil {
			err = errors.Join(err, c.remove(ctx, &list[i]))
		}
	}
	return err
}
