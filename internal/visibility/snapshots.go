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
	"bytes"
	"compress/gzip"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/snapshot"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/limiter"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/memory"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// snapshots serves the facts of now. One is written at a time, since it takes the memory of all units.
type snapshots struct {
	reader *Reader
	turn   chan struct{}
}

var (
	_ rest.Storage              = &snapshots{}
	_ rest.Scoper               = &snapshots{}
	_ rest.SingularNameProvider = &snapshots{}
	_ rest.Getter               = &snapshots{}
)

// New implements rest.Storage.
func (s *snapshots) New() runtime.Object { return &v1alpha1.Snapshot{} }

// Destroy implements rest.Storage.
func (s *snapshots) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (s *snapshots) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (s *snapshots) GetSingularName() string { return "snapshot" }

// Get has the engine hand out its facts, which it does not change, and writes them here.
func (s *snapshots) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if name != v1alpha1.SnapshotNow {
		return nil, notFound("snapshots", name)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		return nil, apierrors.NewTooManyRequests("another snapshot is being written", limiter.ComeBack)
	}
	a, err := ask(ctx, s.reader, func(v questions.View) (*virtual.Facts, bool) { return v.Facts(), true })
	if err != nil {
		return nil, err
	}
	facts := a.value
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	err = snapshot.Write(z, &snapshot.Snapshot{
		At: a.at, Facts: facts, Runs: memory.PastOf(s.reader.History, "", nil).Runs,
		Extended: len(facts.Config.Policies) > 0 || facts.Config.Order != nil,
	})
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return &v1alpha1.Snapshot{ObjectMeta: named("", name), Observation: a.observation(), Document: out.Bytes()}, nil
}
