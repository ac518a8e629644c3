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

// Package facts is all that the page knows. Source is the one seam to both APIs. Cluster asks them as the plugin does,
// with the rights of the caller. Tests have a source of their own.
package facts

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/unitlist"
)

// Source answers questions with the rights of one caller. An empty namespace asks for all, which needs the right to.
// Errors of the API server are returned as they are, so that the page tells a missing right from a missing object.
type Source interface {
	// Namespace of the caller, for answers of one namespace where the right to all is missing.
	Namespace() string
	Quotas(ctx context.Context, namespace string) ([]visibility.Quota, error)
	Queues(ctx context.Context, namespace string) ([]visibility.Queue, error)
	// Line is a part of the line of a queue, from a number of units behind its head.
	Line(ctx context.Context, namespace, queue string, from, limit int) (*visibility.WaitingUnitList, error)
	// Jobs are rows of units, the first ones up to a limit. A query without a namespace is of all that the caller may see.
	// more says that the limit left some out.
	Jobs(ctx context.Context, q *unitlist.Query, limit int) (rows []screen.Row, more bool, err error)
	// Admitted units with all that they hold, the first ones up to a limit.
	Admitted(ctx context.Context, namespace string, limit int) ([]v1alpha1.QueueUnit, error)
	// Forecasts of the units of a queue that are admitted first, by namespace/name. Without an answer there are none.
	Forecasts(ctx context.Context, queue string) map[string]*visibility.Forecast
	// Story is why a unit waits.
	Story(ctx context.Context, namespace, unit string) (*screen.Story, error)
	Records(ctx context.Context, q *answers.RecordQuery) (*answers.Records, error)
	Preemptions(ctx context.Context, q *answers.PreemptionQuery, dryRun bool) (*answers.Preemptions, error)
	Findings(ctx context.Context) ([]doctor.Finding, error)
	Pods(ctx context.Context, u *v1alpha1.QueueUnit) (pods []corev1.Pod, more bool, err error)
	Events(ctx context.Context, u *v1alpha1.QueueUnit) ([]corev1.Event, error)
	// YAML of the unit and of its job.
	YAML(ctx context.Context, u *v1alpha1.QueueUnit) (string, error)
	Rights(ctx context.Context, u *v1alpha1.QueueUnit) (Rights, error)
	// Run is a command of the plugin, with its arguments. It returns what the command says.
	Run(ctx context.Context, args ...string) (said string, err error)
}

// Rights of the caller on one job.
type Rights struct {
	// Owner may change the job.
	Owner bool
	// Operator may change the QueueUnit.
	Operator bool
}
