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
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/schemas"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/sight"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/transport"
)

// tree has a quota with room for 4 cpu, in a department of 20 that pods which no queue knows fill by 14.
type tree struct{}

func (tree) Resolve(_ string, labels map[string]string) string {
	for _, quota := range labels {
		return quota
	}
	return "quota"
}
func (tree) SetDemand(string, resources.List) bool { return false }
func (tree) TotalMoved() bool                      { return false }
func (tree) All() []string                         { return []string{"quota", "other", "department"} }
func (tree) Observe([]string) ([]admission.Quota, []string) {
	list := func(cpu int64) resources.List { return resources.FromMap(map[string]int64{"cpu": 1000 * cpu}) }
	return []admission.Quota{
		{Name: "quota", Parent: "department", Limit: list(4), Max: list(10), Shared: true},
		{Name: "other", Parent: "department", Limit: list(4), Max: list(4)},
		{Name: "department", Parent: "root", Limit: list(20), Max: list(20), Used: list(14)},
		{Name: "root", Limit: list(100), Max: list(100), Used: list(14)},
	}, nil
}

// stepped makes the steps of an engine while somebody asks it.
type stepped struct{ e *engine.Driver }

func (s stepped) Ask(ctx context.Context, f func(questions.View)) error {
	answer := make(chan error, 1)
	go func() { answer <- s.e.Engine.Ask(ctx, f) }()
	for {
		select {
		case err := <-answer:
			return err
		default:
			s.e.Step()
		}
	}
}

func madeUnit(namespace, name, phase, queue string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
		"metadata": map[string]any{
			"name": name, "namespace": namespace, "uid": name + namespace, "resourceVersion": "1",
			"creationTimestamp": "2026-01-01T00:00:00Z",
		},
		"spec":   map[string]any{"request": map[string]any{"cpu": "4"}, "queue": queue},
		"status": map[string]any{"phase": phase, "attempts": int64(1)},
	}}
}

var start = time.Unix(0, 0)

// world is an engine with a blocking queue that two namespaces share, and one that is of the second alone. Units of the
// queue wait in turn: a/u0, b/u1, a/u2, ...
func world(t *testing.T, waiting int, leads bool) *engine.Driver {
	t.Helper()
	e := drive(t)
	for _, name := range []string{"shared", "theirs"} {
		e.FeedQueue(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"queuePolicy": "Block", "priority": int64(3)},
		}}, false)
	}
	e.FeedUnit(madeUnit("a", "running", "Running", "shared"), false)
	e.FeedUnit(madeUnit("b", "secret", "Enqueued", "theirs"), false)
	for i := range waiting {
		e.FeedUnit(madeUnit([]string{"b", "a"}[i%2], fmt.Sprintf("u%04d", i), "Enqueued", "shared"), false)
	}
	if leads {
		require.NoError(t, e.Lead(t.Context()))
	} else {
		e.Loaded()
	}
	e.Step()
	return e
}

func drive(t testing.TB) *engine.Driver {
	t.Helper()
	return driveBy(t, clocktesting.NewFakeClock(start))
}

func driveBy(t testing.TB, c clock.WithTicker) *engine.Driver {
	t.Helper()
	return driveOn(t, c, tree{})
}

func driveOn(t testing.TB, c clock.WithTicker, quotas quotawatch.Quotas) *engine.Driver {
	t.Helper()
	client, err := objects.NewClient(transport.Config(dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
		runtime.NewScheme(), map[schema.GroupVersionResource]string{
			v1alpha1.QueueUnitResource: "QueueUnitList", v1alpha1.QueueResource: "QueueList",
		})))
	require.NoError(t, err)
	managed, err := managedjobs.NewPredicate(managedjobs.Default())
	require.NoError(t, err)
	e, err := engine.New(engine.Options{
		Client: client, Quotas: quotas, Clock: c, Submit: func(*statuswrite.Write) {},
		Predicate: managed,
	})
	require.NoError(t, err)
	return engine.Drive(e)
}

func readerOf(t *testing.T, waiting int) *Reader {
	t.Helper()
	return NewReader(stepped{world(t, waiting, true)}, clocktesting.NewFakeClock(start))
}

// served is the handler of the real server, that takes anybody for whom it says it is. allowed says who may.
func served(t testing.TB, r *Reader, allowed authorizer.AuthorizerFunc) http.Handler {
	t.Helper()
	cfg := server.NewConfig(codecs)
	cfg.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	cfg.ExternalAddress = "localhost:443"
	cfg.LoopbackClientConfig = &rest.Config{Host: "localhost"}
	cfg.Authorization.Authorizer = allowed
	cfg.Authentication.Authenticator = authenticator.RequestFunc(
		func(req *http.Request) (*authenticator.Response, bool, error) {
			name := req.Header.Get("X-User")
			return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
		})
	namer := openapi.NewDefinitionNamer(scheme)
	cfg.OpenAPIConfig = server.DefaultOpenAPIConfig(schemas.Definitions, namer)
	cfg.OpenAPIV3Config = server.DefaultOpenAPIV3Config(schemas.Definitions, namer)
	s, err := cfg.Complete(nil).New("test", server.NewEmptyDelegate())
	require.NoError(t, err)
	require.NoError(t, install(s, r, sight.New(allowed, clocktesting.NewFakeClock(start))))
	s.PrepareRun()
	return s.Handler
}
