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

package podrequest

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxScale bounds the decimal exponent of an amount; beyond it, comparing takes unreasonable time.
	maxScale = 100
	// MaxResources bounds the resources that one request may name, as the CRD of units does.
	MaxResources = 64
	// maxContainers bounds the containers of a pod. The time to add up sidecars grows with their number times that of
	// their resources: the largest pod of an API server takes twenty seconds.
	maxContainers = 512
)

// ErrRequest marks a request that cannot be counted: negative, or beyond what 64 bits hold.
var ErrRequest = errors.New("request cannot be counted")

// Of is the request of one pod of the template in a cluster that adds nothing to pods. Containers, init containers and
// sidecars are added as the scheduler does, with overhead and pod-level resources. A missing request is the limit, as
// the API server fills it in for pods but not for templates.
func Of(template *corev1.PodTemplateSpec) (corev1.ResourceList, error) {
	return (&Creation{}).Request(template)
}

// Times multiplies a request; the error is ErrRequest when the product does not fit.
func Times(one corev1.ResourceList, count int64) (corev1.ResourceList, error) {
	if count < 0 {
		return nil, fmt.Errorf("%w: %d pods", ErrRequest, count)
	}
	all := make(corev1.ResourceList, len(one))
	for name, quantity := range one {
		amount, err := amountOf(name, quantity)
		if err != nil {
			return nil, err
		}
		hi, lo := bits.Mul64(uint64(amount), uint64(count)) //nolint:gosec // neither is negative
		if hi != 0 || lo > math.MaxInt64 {
			return nil, fmt.Errorf("%w: %d times %s %s", ErrRequest, count, quantity.String(), name)
		}
		all[name] = quantityOf(name, int64(lo), quantity.Format)
	}
	return all, nil
}

func Sum(a, b corev1.ResourceList) (corev1.ResourceList, error) {
	for name, more := range b {
		have := a[name]
		x, errX := amountOf(name, have)
		y, errY := amountOf(name, more)
		if err := errors.Join(errX, errY); err != nil {
			return nil, err
		}
		if x > math.MaxInt64-y {
			return nil, fmt.Errorf("%w: %s and %s %s", ErrRequest, have.String(), more.String(), name)
		}
		a[name] = quantityOf(name, x+y, more.Format)
	}
	return a, nil
}

// check refuses amounts that are negative or do not fit.
func check(list corev1.ResourceList) error {
	names := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names) // the first by name is reported, whatever the order of the map
	for _, name := range names {
		if _, err := amountOf(name, list[name]); err != nil {
			return err
		}
	}
	return nil
}

// amountOf is the amount in the unit that the queue counts in: thousandths of cpu, whole units of all else, rounded up.
func amountOf(name corev1.ResourceName, quantity resource.Quantity) (int64, error) {
	if scale := quantity.AsDec().Scale(); scale < -maxScale || scale > maxScale {
		return 0, fmt.Errorf("%w: amount of %s has too many digits", ErrRequest, name) // to print it would take minutes
	}
	limit := int64(math.MaxInt64)
	if name == corev1.ResourceCPU {
		limit /= 1000
	}
	switch {
	case quantity.Sign() < 0:
		return 0, fmt.Errorf("%w: %s of %s is negative", ErrRequest, quantity.String(), name)
	case quantity.CmpInt64(limit) > 0:
		return 0, fmt.Errorf("%w: %s of %s is too much", ErrRequest, quantity.String(), name)
	case name == corev1.ResourceCPU:
		return quantity.MilliValue(), nil
	default:
		return quantity.Value(), nil
	}
}

func quantityOf(name corev1.ResourceName, amount int64, format resource.Format) resource.Quantity {
	if name == corev1.ResourceCPU {
		return *resource.NewMilliQuantity(amount, format)
	}
	return *resource.NewQuantity(amount, format)
}

// checkSize refuses a pod that would take unreasonable time to add up.
func checkSize(spec *corev1.PodSpec) error {
	if n := len(spec.InitContainers) + len(spec.Containers); n > maxContainers {
		return fmt.Errorf("%w: %d containers, at most %d can be added up", ErrRequest, n, maxContainers)
	}
	lists := []corev1.ResourceList{spec.Overhead}
	add := func(r *corev1.ResourceRequirements) { lists = append(lists, r.Requests, r.Limits) }
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			add(&containers[i].Resources)
		}
	}
	if spec.Resources != nil {
		add(spec.Resources)
	}
	names := map[corev1.ResourceName]struct{}{}
	for _, list := range lists {
		for name := range list {
			names[name] = struct{}{}
		}
	}
	if len(names) > MaxResources {
		return fmt.Errorf("%w: %d resources, at most %d can be added up", ErrRequest, len(names), MaxResources)
	}
	return nil
}

// checkContainers looks at every amount on its own: in a sum a negative one could hide.
func checkContainers(spec *corev1.PodSpec) error {
	if err := checkSize(spec); err != nil {
		return err
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			if err := errors.Join(check(r.Requests), check(r.Limits)); err != nil {
				return fmt.Errorf("container %q: %w", containers[i].Name, err)
			}
		}
	}
	if spec.Resources != nil {
		if err := errors.Join(check(spec.Resources.Requests), check(spec.Resources.Limits)); err != nil {
			return err
		}
	}
	return check(spec.Overhead)
}
