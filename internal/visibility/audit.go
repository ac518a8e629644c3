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
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/audit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
)

// Audit is the last audit. To ask for it starts none.
func (r *Reader) Audit(ctx context.Context) (*v1alpha1.Audit, error) {
	a, err := ask(ctx, r, func(v questions.View) (*audit.Result, bool) {
		last := v.LastAudit()
		return last, last != nil
	})
	switch {
	case err != nil:
		return nil, err
	case !a.leads:
		return nil, standby()
	case !a.found:
		return nil, notFound("audits", v1alpha1.LastAudit)
	}
	return &v1alpha1.Audit{
		ObjectMeta: named("", v1alpha1.LastAudit), Observation: a.observation(), Status: auditStatus(a.value),
	}, nil
}

// standby is the answer of a scheduler that makes no audits. The next question may reach another one.
func standby() error {
	return apierrors.NewServiceUnavailable("the scheduler that answered does not lead and makes no audits; ask again")
}

// Audits has the last audit, if there was one.
func (r *Reader) Audits(ctx context.Context) (*v1alpha1.AuditList, error) {
	audit, err := r.Audit(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return &v1alpha1.AuditList{Items: []v1alpha1.Audit{}}, nil
	case err != nil:
		return nil, err
	}
	list := &v1alpha1.AuditList{Observation: audit.Observation, Items: []v1alpha1.Audit{*audit}}
	list.Items[0].Observation = nil
	return list, nil
}

// RequestAudit has another audit made soon, which costs a list of all units: at most one a minute. It answers with the
// audit before, if there was one.
func (r *Reader) RequestAudit(ctx context.Context) (*v1alpha1.Audit, error) {
	type requested struct {
		wait time.Duration
		last *audit.Result
	}
	a, err := ask(ctx, r, func(v questions.View) (requested, bool) {
		if !v.Leading() {
			return requested{}, false
		}
		return requested{v.RequestAudit(), v.LastAudit()}, true
	})
	switch {
	case err != nil:
		return nil, err
	case !a.leads:
		return nil, standby()
	}
	if wait := a.value.wait; wait > 0 {
		seconds := int(math.Ceil(wait.Seconds()))
		return nil, apierrors.NewTooManyRequests(
			fmt.Sprintf("an audit was requested less than a minute ago; wait %ds", seconds), seconds)
	}
	return &v1alpha1.Audit{
		ObjectMeta: named("", v1alpha1.LastAudit), Observation: a.observation(), Status: auditStatus(a.value.last),
	}, nil
}

func auditStatus(last *audit.Result) *v1alpha1.AuditStatus {
	if last == nil {
		return nil
	}
	out := &v1alpha1.AuditStatus{
		At: metav1.NewTime(last.At), Took: metav1.Duration{Duration: last.Took.Round(time.Millisecond)},
		Units: count(last.Units), Pods: count(last.Pods), Levels: count(last.Levels),
		Found: count(last.Found), Rebuilt: last.Rebuilt,
	}
	for _, d := range last.Differences {
		out.Differences = append(out.Differences, v1alpha1.Difference{
			Kind: string(d.Kind), Object: d.Object, Field: d.Field, Engine: d.Engine, Source: d.Source,
		})
	}
	return out
}
