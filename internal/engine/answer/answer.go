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

// Package answer sorts errors of writes by the state of the object after them: applied, not applied, or unknown.
package answer

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
)

// Answer of the API server to one attempt of a write.
type Answer struct {
	Outcome transition.Outcome
	// Gone: the object does not exist.
	Gone bool
	// RetryAfter is what the server asks for; zero for nothing.
	RetryAfter time.Duration
}

// Of sorts errors by their meaning for the object of that name. An error about the request says nothing: the outcome is
// unknown unless it is certain that nothing was and will be applied.
func Of(err error, name string) Answer {
	a := Answer{Outcome: transition.Unknown}
	switch {
	case IsGone(err, name):
		a.Outcome, a.Gone = transition.Refuted, true
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsNotAcceptable(err), apierrors.IsUnsupportedMediaType(err),
		apierrors.IsRequestEntityTooLargeError(err):
		a.Outcome = transition.Refused
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		a.RetryAfter = time.Duration(seconds) * time.Second
	}
	return a
}

// IsGone tells a missing object from a missing resource: while a CRD is being replaced every path is not found.
func IsGone(err error, name string) bool {
	if !apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return false
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}
