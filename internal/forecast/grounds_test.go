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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

func TestCauses(t *testing.T) {
	grounds := func(change func(*admission.State, *unit.Unit), position int) *Grounds {
		s, x := cluster("Priority"), job("ns/x", 5, time.Hour, 0)
		s.UpsertUnit(epoch, job("ns/a", 8, time.Hour, 10*time.Minute))
		change(s, &x)
		return GroundsOf(virtual.FactsOf(s, admission.Config{}, epoch), epoch, &x, position)
	}
	set := func(q admission.Quota) func(*admission.State, *unit.Unit) {
		return func(s *admission.State, _ *unit.Unit) { s.SetQuota(epoch, q) }
	}
	none := func(*admission.State, *unit.Unit) {}
	for name, c := range map[string]struct {
		change   func(*admission.State, *unit.Unit)
		position int
		want     Cause
	}{
		"nothing":        {none, 2, Other},
		"fewer ahead":    {none, 1, Other},
		"more ahead":     {none, 3, ArrivalAhead},
		"a new priority": {func(_ *admission.State, u *unit.Unit) { u.Priority-- }, 3, UnitChanged},
		"less capacity":  {set(admission.Quota{Name: "root", Limit: cpu(9), Max: cpu(10)}), 2, CapacityChanged},
		"more capacity":  {set(admission.Quota{Name: "root", Limit: cpu(11), Max: cpu(11)}), 2, Other},
		"a lower max":    {set(admission.Quota{Name: "q", Parent: "root", Limit: cpu(9), Max: cpu(9)}), 2, QuotaChanged},
		"a new bound": {
			set(admission.Quota{Name: "q", Parent: "root", Limit: cpu(10), Max: cpu(10), Min: cpu(1)}), 2, QuotaChanged,
		},
		"closed": {
			set(admission.Quota{Name: "q", Parent: "root", Limit: cpu(10), Max: cpu(10), Closed: true}), 2, QuotaChanged,
		},
		"beyond its limit": {func(s *admission.State, _ *unit.Unit) {
			s.UpsertUnit(epoch, job("ns/b", 1, time.Hour, 61*time.Minute))
		}, 2, HolderBeyondItsLimit},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, grounds(c.change, c.position).Cause(grounds(none, 2)))
		})
	}
}
