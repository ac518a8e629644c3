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

// Package inspection checks running processes by their metrics, their audits of themselves, and panics in their logs.
package inspection

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// Get returns the body of an answer with status 200.
func Get(ctx context.Context, url string) (string, error) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("GET %s: %s", url, response.Status)
	}
	var body strings.Builder
	if _, err := io.Copy(&body, response.Body); err != nil {
		return "", err
	}
	return body.String(), nil
}

// Metrics visits each series of the process at the URL. labels are what stands between the braces.
func Metrics(ctx context.Context, url string, visit func(name, labels string, value float64)) error {
	text, err := Get(ctx, url+"/metrics")
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		series, amount, ok := strings.Cut(strings.TrimSpace(line), " ")
		value, err := strconv.ParseFloat(amount, 64)
		if !ok || err != nil || strings.HasPrefix(series, "#") {
			continue
		}
		name, labels, _ := strings.Cut(series, "{")
		visit(name, strings.TrimSuffix(labels, "}"), value)
	}
	return nil
}

// Audits counts the audits of the scheduler at the URL: those that found its state to be right, and the others.
func Audits(ctx context.Context, url string) (clean, other float64, err error) {
	err = Metrics(ctx, url, func(name, labels string, value float64) {
		switch {
		case name != "scheduler_jobqueue_audits_total":
		case labels == `result="Clean"`:
			clean += value
		default:
			other += value
		}
	})
	return clean, other, err
}

// The rules of processes.
const (
	// Panicked: a process panicked, whether or not it went on.
	Panicked checker.Rule = "Panicked"
	// Unclean: an audit of a scheduler found its state to differ from the API objects, or failed.
	Unclean checker.Rule = "Unclean"
)

var panicLine = regexp.MustCompile(`(?m)^(panic:|fatal error:|.*Observed a panic|.*"Recovered from a panic").*$`)

// Panics searches the logs of the components.
func Panics(cp *controlplane.ControlPlane, components ...controlplane.Component) (found []checker.Violation) {
	for _, c := range components {
		content, err := os.ReadFile(cp.LogPath(c))
		if err != nil {
			continue
		}
		for _, line := range panicLine.FindAll(content, -1) {
			found = append(found, checker.Violation{Rule: Panicked, Subject: string(c), Message: string(line)})
		}
	}
	return found
}
