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

package statuswrite

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects/objectstest"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
)

func TestWritesAreNumberedAndEndWithTheProcess(t *testing.T) {
	var sent []int64
	w := New(Options{Submit: func(x *Write) { sent = append(sent, x.ID) }}, nil)
	ctx, end := context.WithCancel(t.Context())
	var background sync.WaitGroup
	w.Start(ctx, &background)
	u := &objects.Unit{}
	first := w.Unit(u, Admit, nil, time.Time{})
	w.Later(first)
	w.Later(w.Unit(u, Evict, nil, time.Time{}))
	require.Empty(t, sent)
	w.Submit(w.Queue(&objects.Queue{}, nil, time.Time{}))
	w.Flush()
	w.Flush()
	require.Equal(t, []int64{3, 1, 2}, sent)
	require.False(t, first.Dropped())
	end()
	require.True(t, first.Dropped())
	background.Wait()
}

// TestWritesAreAnswered: what becomes of a write, by the answer.
func TestWritesAreAnswered(t *testing.T) {
	status := func(code int, reason metav1.StatusReason, name string) string {
		text, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason,
			Details: &metav1.StatusDetails{Name: name},
		})
		require.NoError(t, err)
		return string(text)
	}
	admitted := objectstest.Unit(1, 20, objectstest.Admitted)
	for _, tt := range []struct {
		name string
		code int
		body string
		want transition.Outcome
	}{
		{"applied", 200, admitted, transition.Confirmed},
		{"unreadable answer", 200, "{", transition.Unknown},
		{"conflict, applied", 409, status(409, metav1.StatusReasonConflict, "job-train-1"), transition.Confirmed},
		{"gone", 404, status(404, metav1.StatusReasonNotFound, "job-train-1"), transition.Refuted},
		{"no such resource", 404, "404 page not found", transition.Unknown},
		{"invalid", 422, status(422, metav1.StatusReasonInvalid, "job-train-1"), transition.Refused},
		{"forbidden", 403, status(403, metav1.StatusReasonForbidden, "job-train-1"), transition.Refused},
		{"broken", 500, "", transition.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var paths []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				paths = append(paths, req.Method+" "+req.URL.String()+" "+req.Header.Get("Content-Type")+" "+string(body))
				w.Header().Set("Content-Type", "application/json")
				if req.Method == http.MethodGet {
					_, _ = io.WriteString(w, admitted)
					return
				}
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			base := read(t, objectstest.Unit(1, 10, objectstest.Waiting))
			w := New(Options{Clock: clock.RealClock{}, Submit: func(*Write) {}}, nil).
				Unit(base, Admit, map[string]any{"phase": "Dequeued"}, time.Time{})
			w.Attempt, w.Decision = 1, &transition.Admit{}
			client, err := objects.NewClient(&rest.Config{Host: server.URL, QPS: -1})
			require.NoError(t, err)
			result := w.Do(t.Context(), client)
			require.Equal(t, tt.want, result.Outcome)
			require.Equal(t, tt.name == "gone", result.Gone)
			require.Equal(t, tt.code == http.StatusConflict, result.conflict)
			const path = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/team/queueunits/job-train-1"
			want := []string{"PATCH " + path + "/status application/merge-patch+json " +
				`{"metadata":{"resourceVersion":"10","uid":"a1b2c3d4-1111-4222-8333-000000000001"},"status":{"phase":"Dequeued"}}`}
			if result.conflict {
				want = append(want, "GET "+path+"  ")
			}
			require.Equal(t, want, paths)
			if tt.want == transition.Confirmed {
				require.Equal(t, read(t, admitted), result.Fresh)
			} else {
				require.Nil(t, result.Fresh)
			}
		})
	}
}

func read(t *testing.T, text string) *objects.Unit {
	t.Helper()
	w := &objects.WireUnit{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), w))
	return objects.DecodeUnit(w)
}
