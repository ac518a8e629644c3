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

package checker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func charges(queued bool) *Charges {
	c := NewCharges(queued, map[string]string{"victims": "victim"})
	for _, quota := range []string{"hostile", "other", "victims"} {
		c.Apply(Event{Object: Quota{Name: quota, Max: cpu(4)}})
	}
	return c
}

// made is a pod of a hostile tenant.
func made(name, quota string, cores int64) Pod {
	return Pod{UID: name, Name: "ns/" + name, Quota: quota, Request: cpu(cores)}
}

// holds is a unit that holds quota.
func holds(name, quota string, cores int64) Unit {
	return Unit{Key: "ns/" + name, UID: name, Queue: quota, Quota: quota, Admitted: true, Held: cpu(cores)}
}

func TestCharges(t *testing.T) {
	const a, b, other, victims = "hostile", "hostile", "other", "victims"
	ended := func(name string, cores int64) Pod {
		p := made(name, a, cores)
		p.Bound, p.Terminal = true, true
		return p
	}
	of := func(u Unit, job string) Unit { u.Job = job; return u }
	adopted, foreign, own, waiting := holds("x", a, 100), holds("x", a, 1), holds("x", victims, 1), holds("x", victims, 0)
	adopted.Adopted, foreign.Queue, own.Key, waiting.Admitted, waiting.Held = true, victims, "victim/x", false, nil
	for name, test := range map[string]struct {
		objects []any
		want    []Rule
	}{
		"pods within": {[]any{made("a", a, 4), made("a", a, 4).bound(), made("b", b, 4)}, nil},
		"pods beyond": {[]any{made("a", a, 4), made("a", a, 4).bound(), made("b", b, 1), made("b", b, 1).bound(),
			made("b", b, 1).bound()}, []Rule{QuotaPassed}},
		"a pod that nobody scheduled": {[]any{made("a", a, 4).bound(), made("b", b, 4), made("b", b, 4).bound()}, nil},
		"a pod that is labelled on its node": {[]any{made("a", other, 4), made("a", other, 4).bound(), made("b", b, 4),
			made("b", b, 4).bound(), made("a", a, 4).bound(), made("a", a, 4).bound()}, nil},
		"a pod that is over": {[]any{made("a", a, 4), made("a", a, 4).bound(), ended("a", 4), made("b", b, 4),
			made("b", b, 4).bound()}, nil},
		"a pod in a quota of another": {[]any{made("a", victims, 1), made("a", victims, 1).bound()}, []Rule{ForeignCharge}},
		"units within":                {[]any{holds("a", a, 3), holds("b", other, 3), adopted}, nil},
		"units beyond": {[]any{holds("a", a, 3), holds("b", b, 2), holds("b", b, 2)},
			[]Rule{HeldBeyondMax}},
		"a unit in a quota of another": {[]any{holds("a", victims, 1), holds("a", victims, 1)}, []Rule{ForeignCharge}},
		"a unit in a queue of another": {[]any{foreign}, []Rule{ForeignCharge}},
		"a unit in its own quota":      {[]any{own, waiting}, nil},
		"a job that is being deleted": {[]any{of(holds("a", a, 3), "j"), Job{UID: "j", Deleting: true},
			of(holds("a", a, 3), "j"), holds("b", b, 3)}, nil},
		"a job that is complete": {[]any{of(holds("a", a, 3), "j"), Job{UID: "j", Complete: true}, holds("b", b, 3)}, nil},
		"a job that runs":        {[]any{of(holds("a", a, 3), "j"), Job{UID: "j"}, holds("b", b, 3)}, []Rule{HeldBeyondMax}},
	} {
		t.Run(name, func(t *testing.T) {
			c := charges(true)
			for _, object := range test.objects {
				c.Apply(Event{Object: object})
			}
			require.Equal(t, test.want, rules(c.Violations()), "%v", c.Violations())
		})
	}
}

func TestChargesOfWhatIsDeleted(t *testing.T) {
	c := charges(true)
	for _, name := range []string{"a", "b"} {
		c.Apply(Event{Object: made(name, "hostile", 4)})
		c.Apply(Event{Object: made(name, "hostile", 4).bound()})
		c.Apply(Event{Object: made(name, "hostile", 4).bound(), Deleted: true})
		c.Apply(Event{Object: holds(name, "hostile", 4)})
		c.Apply(Event{Object: holds(name, "hostile", 4), Deleted: true})
	}
	require.Empty(t, c.Violations())
}

// Without the queue only ElasticQuota bounds pods. Units and named quotas are judged all the same.
func TestChargesWithoutTheQueue(t *testing.T) {
	c := charges(false)
	for _, object := range []any{made("a", "hostile", 5), made("a", "hostile", 5).bound()} {
		c.Apply(Event{Object: object})
	}
	require.Empty(t, c.Violations())
	c.Apply(Event{Object: made("b", "victims", 1)})
	c.Apply(Event{Object: holds("u", "other", 5)})
	require.Equal(t, []Rule{ForeignCharge, HeldBeyondMax}, rules(c.Violations()))
}
