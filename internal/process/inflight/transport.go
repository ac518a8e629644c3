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

package inflight

import (
	"net/http"
	"strings"
)

// Wrap has writes of a client wait in line; it is for rest.Config.Wrap. Reads pass, and so do leases: a leader that
// waits for its turn to renew is none any more.
func (l *Line) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		resource := resourceOf(request.URL.Path)
		if !changes(request.Method) || unbounded[resource] {
			return next.RoundTrip(request)
		}
		leave, err := l.Enter(request.Context(), resource == "events" || isReport(request.Context()))
		if err != nil {
			return nil, err
		}
		response, err := next.RoundTrip(request)
		leave(request.Method+" "+resource, err != nil || overloaded(response.StatusCode))
		return response, err
	})
}

// unbounded resources: leases, and questions that are asked with POST.
var unbounded = map[string]bool{
	"leases": true, "tokenreviews": true, "subjectaccessreviews": true, "selfsubjectaccessreviews": true,
}

func changes(method string) bool { return method != http.MethodGet && method != http.MethodHead }

func overloaded(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// resourceOf a path: /api/v1/namespaces/NS/RESOURCE/NAME or /apis/GROUP/VERSION/RESOURCE.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 2 // api, version
	if parts[0] == "apis" {
		skip++
	}
	if len(parts) > skip+2 && parts[skip] == "namespaces" {
		skip += 2
	}
	if len(parts) <= skip {
		return ""
	}
	return parts[skip]
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is of http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
