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

package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
)

func TestReportsArePaced(t *testing.T) {
	w := newWorld(t, newJob())
	w.settle()
	w.admit()
	w.settle()
	w.jobStatus(runs(1))
	w.reconcile()
	w.clock.SetTime(epoch.Add(jobplan.RunningDelay))
	w.settle()
	w.jobStatus(runs(0))
	w.clock.SetTime(epoch.Add(jobplan.RunningDelay + jobplan.ReportInterval))
	w.r.Shared.Reports = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(1, 1, w.clock)
	require.True(t, w.r.Shared.Reports.TryAccept())
	require.Equal(t, jobplan.ReportInterval, w.reconcile().RequeueAfter, "another unit is told of now")
	require.EqualValues(t, 1, w.unit().Status.Admissions[0].Running)
	w.clock.SetTime(epoch.Add(jobplan.RunningDelay + 2*jobplan.ReportInterval))
	require.Zero(t, w.reconcile().RequeueAfter)
	require.Zero(t, w.unit().Status.Admissions[0].Running)
}
