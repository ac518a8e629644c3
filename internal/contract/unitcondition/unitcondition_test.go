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

package unitcondition

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

func TestUnlawful(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Reason: reason}}
	}
	admitted := condition(v1alpha1.ConditionAdmitted, metav1.ConditionTrue, "Admitted")
	require.NoError(t, Unlawful(nil, admitted, unit.WriterScheduler))
	require.NoError(t, Unlawful(admitted, admitted, unit.WriterController), "it is left as it is")
	require.ErrorContains(t, Unlawful(nil, admitted, unit.WriterController), "Admitted")
	require.ErrorContains(t, Unlawful(nil, condition("Levitating", metav1.ConditionTrue, "x"),
		unit.WriterScheduler), "Levitating")
	parked := condition(v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, ReasonHeldByOwner)
	require.NoError(t, Unlawful(admitted, parked, unit.WriterController))
	require.Error(t, Unlawful(nil, condition(v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, "QueueFull"),
		unit.WriterController))
}
