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

package pages

import "github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"

type healthBody struct {
	Findings                []doctor.Finding
	Errors, Warnings, Notes int
}

// healthPage shows what "doctor" finds.
func healthPage(q *question) (*view, error) {
	findings, err := q.Findings(q.Context)
	if err != nil {
		return nil, err
	}
	body := &healthBody{Findings: findings}
	for _, f := range findings {
		switch f.Severity {
		case doctor.Error:
			body.Errors++
		case doctor.Warning:
			body.Warnings++
		case doctor.Note:
			body.Notes++
		}
	}
	return &view{Title: "Health", Nav: "/health", Template: "health", Body: body}, nil
}
