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

package coreplay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/coreplay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/replay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// A queue that blocks is first come, first served. A queue of policy Priority whose units never claim starts whatever
// fits.
func TestTheCoreIsWhatItIsCalled(t *testing.T) {
	policies := map[string]replay.Policy{}
	for _, p := range append(replay.References(), coreplay.Policies(admission.Config{})...) {
		policies[p.Name] = p
	}
	for seed := range uint64(4) {
		w, err := trace.Lublin(1500, 128, seed)
		require.NoError(t, err)
		play := func(policy string) []replay.Hold {
			holds, err := policies[policy].Replay(w, func(int) error { return nil })
			require.NoError(t, err)
			return holds
		}
		require.Equal(t, starts(play("fcfs")), starts(play("block")), "seed %d", seed)
		require.Equal(t, starts(play("greedy")), starts(play("priority")), "seed %d", seed)
	}
}

func starts(holds []replay.Hold) map[int]replay.Hold {
	of := map[int]replay.Hold{}
	for _, h := range holds {
		of[h.Job] = h
	}
	return of
}
