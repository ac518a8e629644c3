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

package objects

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// Nobody takes a job that was admitted a moment ago, unless the queue of the job says so.
func TestMinRunTimeOfAQueue(t *testing.T) {
	for spec, want := range map[string]time.Duration{
		`{}`:                                           time.Minute,
		`{"preemption":{}}`:                            time.Minute,
		`{"preemption":{"reclaim":"Any"}}`:             time.Minute,
		`{"preemption":{"minRunTimeSeconds":0}}`:       0,
		`{"preemption":{"minRunTimeSeconds":90}}`:      90 * time.Second,
		`{"preemption":{"minRunTimeSeconds":2000000}}`: time.Hour,
		`{"preemption":"unreadable"}`:                  time.Minute,
	} {
		q := DecodeQueue(&WireQueue{WireObject{Spec: json.RawMessage(spec)}}, "", queue.Timeouts{})
		require.Equal(t, want, q.Spec.Preemption.MinRunTime, spec)
	}
}
