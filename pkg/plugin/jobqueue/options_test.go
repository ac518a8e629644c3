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

package jobqueue

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/features"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

type anyCheck struct{}

func (anyCheck) Key(unit.Unit) string                  { return "" }
func (anyCheck) Check(unit.Unit) (unit.Reason, string) { return "", "" }

func TestExtensionsReachTheEngine(t *testing.T) {
	w := wiring(t, WithPolicy("NewestFirst", queue.Builtin()["FIFO"]), WithCheck(anyCheck{}),
		WithQueueOrder(queue.FairOrder{}))
	c := &core{args: defaultArgs(t), gates: gatesOf(t, nil), extensions: w.extensions}
	o := c.engineOptions()
	require.Contains(t, o.Policies, "NewestFirst")
	require.Len(t, o.Checks, 1)
	require.Equal(t, queue.FairOrder{}, o.Order)
}

// calendar is a check whose answers change.
type calendar struct {
	anyCheck
	changed func()
}

func (c *calendar) Notify(changed func()) { c.changed = changed }

func TestAChecksChangeReachesTheEngine(t *testing.T) {
	check, told := &calendar{}, 0
	wiring(t, WithCheck(anyCheck{}), WithCheck(check)).extensions.notify(func() { told++ })
	check.changed()
	require.Equal(t, 1, told)
}

func TestExtensionsThatContradictAreRefused(t *testing.T) {
	fifo := queue.Builtin()["FIFO"]
	for want, options := range map[string][]Option{
		`"First Come" is not the name of a policy`: {WithPolicy("First Come", fifo)},
		`policy "Block" is built in`:               {WithPolicy("Block", fifo)},
		`policy "A" is registered twice`:           {WithPolicy("A", fifo), WithPolicy("A", fifo)},
		`policy "A" has no factory`:                {WithPolicy("A", nil)},
		`a check is nil`:                           {WithCheck(nil)},
		`the order of queues is nil`:               {WithQueueOrder(nil)},
		`an order of queues is registered twice`: {WithQueueOrder(queue.FairOrder{}),
			WithQueueOrder(queue.FairOrder{})},
	} {
		_, err := NewWiring(options...)
		require.ErrorContains(t, err, want)
	}
	_, err := NewWiring(WithPolicy("Block", fifo), WithCheck(nil))
	require.ErrorContains(t, err, "built in")
	require.ErrorContains(t, err, "a check is nil", "all of them are named")
}

func TestTheDefaultPolicyIsOneThatTheSchedulerKnows(t *testing.T) {
	args := defaultArgs(t)
	for name := range queue.Builtin() {
		args.DefaultQueuePolicy = name
		require.NoError(t, wiring(t).Validate(args))
	}
	args.DefaultQueuePolicy = "NewestFirst"
	require.EqualError(t, wiring(t).Validate(args),
		`pluginConfig[JobQueue].args.defaultQueuePolicy: Unsupported value: "NewestFirst": `+
			`supported values: "Block", "FIFO", "Intelligent", "Priority"`)
	require.NoError(t, wiring(t, WithPolicy("NewestFirst", queue.Builtin()["FIFO"])).Validate(args))
}

func gatesOf(t *testing.T, values map[string]bool) features.Gates {
	t.Helper()
	gates, err := features.New(values)
	require.NoError(t, err)
	return gates
}

func TestFeatureGatesReachTheEngine(t *testing.T) {
	c := &core{args: defaultArgs(t), gates: gatesOf(t, nil), extensions: wiring(t).extensions}
	require.False(t, c.engineOptions().Config.AdmissionChecksOff)
	require.True(t, c.engineOptions().Config.PartialAdmission)
	c.gates = gatesOf(t, map[string]bool{"AdmissionChecks": false, "PartialAdmission": false})
	require.True(t, c.engineOptions().Config.AdmissionChecksOff)
	require.False(t, c.engineOptions().Config.PartialAdmission)
}

func TestAnUnknownFeatureGateIsRefused(t *testing.T) {
	args := defaultArgs(t)
	args.FeatureGates = map[string]bool{"AdmissionChecks": false}
	require.NoError(t, wiring(t).Validate(args))
	args.FeatureGates["Backfill"] = true
	require.EqualError(t, wiring(t).Validate(args),
		`pluginConfig[JobQueue].args.featureGates: Unsupported value: "Backfill": `+
			`supported values: "AdmissionChecks", "PartialAdmission", "Placement", "Reservations"`)
}

func defaultArgs(t *testing.T) *config.JobQueueArgs {
	t.Helper()
	args, err := argsFrom(nil)
	require.NoError(t, err)
	return args
}
