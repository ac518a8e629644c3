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

package forecast

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// learned has scores of a namespace: for a bound after nine minutes, a unit waited for ten times its score.
func learned(c *Calibration, namespace string, scores ...float64) {
	for _, score := range scores {
		c.Learn(namespace, &Answer{Raw: epoch.Add(9 * time.Minute)}, epoch,
			epoch.Add(time.Duration(score*float64(10*time.Minute))))
	}
}

func upTo(n int) (scores []float64) {
	for i := range n {
		scores = append(scores, float64(i+1)/10)
	}
	return scores
}

func TestCalibration(t *testing.T) {
	for name, c := range map[string]struct {
		scores []float64
		want   float64
	}{
		"none":            {},
		"too few":         {scores: upTo(18)},
		"the largest":     {scores: upTo(19), want: 1.9},
		"the second":      {scores: upTo(39), want: 3.8},
		"the last 150":    {scores: append(upTo(19), make([]float64, 150)...)},
		"one of a moment": {scores: append(upTo(18), 1000), want: mostStretch},
	} {
		t.Run(name, func(t *testing.T) {
			var past Calibration
			learned(&past, "ns", c.scores...)
			require.InDelta(t, c.want, past.Stretch("ns"), 1e-9)
			require.Zero(t, past.Stretch("other"), "a namespace has no influence on others")
		})
	}
	var past Calibration
	past.Learn("ns", &Answer{Latest: epoch}, epoch, epoch)
	require.Empty(t, past.of, "limits alone bound it")
}

func TestStretchedBounds(t *testing.T) {
	bound := epoch.Add(9 * time.Minute)
	require.Equal(t, bound, stretched(bound, epoch, 0))
	require.Equal(t, bound, stretched(bound, epoch, 0.5), "no bound comes earlier")
	require.Equal(t, epoch.Add(20*time.Minute), stretched(bound, epoch, 2))
	far := epoch.Add(200 * 365 * 24 * time.Hour)
	require.Equal(t, far, stretched(far, epoch, mostStretch), "it does not overflow")
}

// Many namespaces do not take more memory.
func TestCalibrationForgets(t *testing.T) {
	var past Calibration
	learned(&past, "first", upTo(19)...)
	learned(&past, "second", upTo(19)...)
	for i := range mostNamespaces - 1 {
		if i == mostNamespaces/2 {
			learned(&past, "first", 1)
		}
		learned(&past, fmt.Sprint(i), 1)
	}
	require.Len(t, past.of, mostNamespaces)
	require.NotZero(t, past.Stretch("first"))
	require.Zero(t, past.Stretch("second"))
}
