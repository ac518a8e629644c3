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

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/checks"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/gateview"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/managed"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/measures"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/podbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/priorities"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/queuestatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/waits"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
)

// facts takes what is known of objects, quotas and pods, and gives it to the core. It decides nothing and writes
// nothing.
type facts struct {
	*env.Env
	opts      *Options
	waits     *waits.Waits
	managed   *managed.Kinds
	sources   *intake.Sources
	core      *recovery.Core
	quotas    *quotawatch.Observer
	units     *unitbook.Book
	pods      *podbook.Book
	publisher *gateview.Publisher
	statuses  *queuestatus.Statuses
	gauges    *measures.Gauges
	checks    *checks.Book
	// priorities are those of classes, and the greatest that namespaces allow.
	priorities *priorities.Book
	queues     map[string]*objects.Queue
	queueNames ordered.Names // of queues
	jobs       map[owner.Name]types.UID
	pasts      pasts
	kinship    *kinship.Jobs
	ghosts     map[string]int // units that only the list at Lead had, and for how many resyncs the watch has passed them
	// retry has the engine come back.
	retry func(now time.Time, in time.Duration)
	// answered is called when the object of a unit says that its write of unknown outcome was applied.
	answered func(now time.Time, rec *unitbook.Record)
}
