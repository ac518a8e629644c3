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

package screen

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

func forecasted() visibility.ForecastStatus {
	return visibility.ForecastStatus{
		About: ptr.To(before(-35 * time.Minute)), Latest: ptr.To(before(-140 * time.Minute)), Ahead: ptr.To[int32](4),
		Draws: 30, Limits: 3, Past: 5, Endless: 1, EndlessJobs: []string{"notebook"},
		MedianWait: &metav1.Duration{Duration: 130 * time.Minute}, Waits: 50,
	}
}

func TestWhen(t *testing.T) {
	moved := forecasted()
	moved.Moved = &visibility.ForecastMoved{From: before(-2 * time.Hour), Cause: "ArrivalAhead"}
	tomorrow := visibility.ForecastStatus{
		About: ptr.To(before(-20 * time.Hour)), Latest: ptr.To(before(-50 * time.Hour)), Ahead: ptr.To[int32](1), Limits: 1,
		MedianWait: &metav1.Duration{Duration: 50 * time.Hour}, Waits: 1,
	}
	checked := forecasted()
	checked.Checks, checked.Endless = &metav1.Duration{Duration: 150 * time.Second}, 0
	endless := visibility.ForecastStatus{
		Reason: "QuotaExceeded", Message: "quota\x1b[2J", Ahead: ptr.To[int32](0),
		Endless: 3, EndlessJobs: []string{"a", "b"},
	}
	for name, s := range map[string]visibility.ForecastStatus{
		"when": forecasted(), "when-moved": moved, "when-tomorrow": tomorrow, "when-endless": endless,
		"when-checks":     checked,
		"when-now":        {About: ptr.To(before(0)), Latest: ptr.To(before(0)), Ahead: ptr.To[int32](0)},
		"when-unbounded":  {About: ptr.To(before(-30 * time.Second)), Past: 1, Endless: 2},
		"when-not-before": {NotBefore: ptr.To(before(-3 * time.Hour)), Ahead: ptr.To[int32](900)},
		"when-bound":      {Latest: ptr.To(before(-26 * time.Hour)), Limits: 2},
		"when-holds":      {Reason: "HoldsQuota", Message: "the unit holds quota already"},
	} {
		f := &visibility.Forecast{ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: "train"}, Status: s}
		golden(t, name, func(b *bytes.Buffer) error { return When(b, now, f) })
	}
}

// Times are those of the reader.
func TestWhenInAnotherZone(t *testing.T) {
	var b bytes.Buffer
	s := visibility.ForecastStatus{About: ptr.To(before(-time.Hour))}
	require.NoError(t, When(&b, now.In(time.FixedZone("", 11*3600)), &visibility.Forecast{Status: s}))
	require.Equal(t, "about Fri 2 Jan 00:00 (in 1 h), no latest time\n", b.String())
}
