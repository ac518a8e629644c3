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
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

func TestWritesAreNumberedAndEndWithTheProcess(t *testing.T) {
	var sent []int64
	w := newWriters(&Options{Submit: func(x *Write) { sent = append(sent, x.id) }}, nil)
	ctx, end := context.WithCancel(t.Context())
	var background sync.WaitGroup
	w.start(ctx, &background)
	u := recorded("a", "")
	first := w.unit(u, writeAdmit, nil, testStart)
	w.later(first)
	w.later(w.unit(u, writeEvict, nil, testStart))
	require.Empty(t, sent)
	w.submit(w.queue(&objects.Queue{}, nil, testStart))
	w.flush()
	w.flush()
	require.Equal(t, []int64{3, 1, 2}, sent)
	require.False(t, first.Dropped())
	end()
	require.True(t, first.Dropped())
	background.Wait()
}
