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
	"fmt"
	"slices"
	"strings"
)

// Charges is for tenants who write anything. It sums the use of pods and units by quota and compares it with the max of
// that quota alone. It believes nothing that one object says about another: a Checker would count pods for any job that
// they name as owner. Not safe for concurrent use.
type Charges struct {
	// queued: the queue manages the objects of the tenants. Without it only ElasticQuota bounds the pods, which was seen
	// to admit half a core more than a max of four.
	queued bool
	// namespaces says of quotas, and of the queues of the same name, which namespace alone they are for.
	namespaces map[string]string
	max        map[string]Resources
	pods       map[string]podCharge // by UID
	held       map[string]charge    // by UID of the unit, if its job is not over
	// over are the UIDs of jobs that have ended, or are being deleted: for the queue they are gone, whatever their unit
	// still says.
	over       map[string]bool
	told       edges
	violations []Violation
}

// charge is what is taken of a quota.
type charge struct {
	quota  string
	amount Resources
	unit   string // its key
	job    string // UID of the job of a unit or pod; "" if it has none
}

// podCharge is what a pod takes.
type podCharge struct {
	charge
	// byHand: a client chose the node of the pod, or labelled the pod when it was on one. The scheduler was not asked.
	byHand bool
	bound  bool
}

// NewCharges returns charges of quotas, of which some are for one namespace alone.
func NewCharges(queued bool, namespaces map[string]string) *Charges {
	return &Charges{
		queued: queued, namespaces: namespaces,
		max: map[string]Resources{}, pods: map[string]podCharge{}, held: map[string]charge{},
		over: map[string]bool{}, told: edges{},
	}
}

func (c *Charges) Violations() []Violation { return slices.Clone(c.violations) }

// Apply takes the next event; events must come in the order of their versions.
func (c *Charges) Apply(e Event) {
	switch object := e.Object.(type) {
	case Quota:
		c.max[object.Name] = object.Max
	case Unit:
		c.unit(object, e.Deleted)
	case Pod:
		c.pod(object, e.Deleted)
	case Job:
		if e.Deleted || object.Deleting || object.Complete || object.Failed {
			c.end(object.UID)
		}
	}
}

// foreign says whether a quota is not for the namespace of a key.
func (c *Charges) foreign(key, quota string) bool {
	namespace, _, _ := strings.Cut(key, "/")
	own := c.namespaces[quota]
	return own != "" && own != namespace
}

func (c *Charges) pod(p Pod, deleted bool) {
	if !deleted && c.foreign(p.Name, p.Quota) && c.told.begins("pod "+p.Name, true) {
		c.report(ForeignCharge, "pod "+p.Name, "names quota %s", p.Quota)
	}
	was, known := c.pods[p.UID]
	if deleted || p.Terminal {
		delete(c.pods, p.UID)
		return
	}
	is := podCharge{charge: charge{quota: p.Quota, amount: p.Request, job: p.Job}, bound: p.Bound}
	is.byHand = p.Bound && (!known || was.byHand || was.bound && was.quota != p.Quota)
	c.pods[p.UID] = is
	if !c.queued || !is.bound || is.byHand {
		return
	}
	c.compare(QuotaPassed, p.Quota, c.boundIn(p.Quota), func() string { return "with pod " + p.Name })
}

// boundIn is what the pods use that the scheduler bound in a quota.
func (c *Charges) boundIn(quota string) Resources {
	sum := Resources{}
	for _, p := range c.pods {
		if p.quota == quota && p.bound && !p.byHand {
			sum.add(p.amount, 1)
		}
	}
	return sum
}

// end takes note that a job is over.
func (c *Charges) end(job string) {
	c.over[job] = true
	for uid, held := range c.held {
		if held.job == job {
			delete(c.held, uid)
		}
	}
}

// unit handles the next state of a unit. An adopted unit holds bound pods, whether or not they fit.
func (c *Charges) unit(u Unit, deleted bool) {
	delete(c.held, u.UID)
	if deleted || !u.Admitted || len(u.Held) == 0 || c.over[u.Job] {
		return
	}
	if (c.foreign(u.Key, u.Quota) || c.foreign(u.Key, u.Queue)) && c.told.begins("unit "+u.Key, true) {
		c.report(ForeignCharge, "unit "+u.Key, "holds of quota %q in queue %q", u.Quota, u.Queue)
	}
	if u.Adopted {
		return
	}
	c.held[u.UID] = charge{u.Quota, u.Held, u.Key, u.Job}
	sum := Resources{}
	for _, held := range c.held {
		if held.quota == u.Quota {
			sum.add(held.amount, 1)
		}
	}
	c.compare(HeldBeyondMax, u.Quota, sum, func() string { return "with unit " + u.Key + "; " + c.holders(u.Quota) })
}

// holders are those of a quota, with their pods on nodes.
func (c *Charges) holders(quota string) string {
	var all []string
	for _, held := range c.held {
		if held.quota == quota {
			all = append(all, fmt.Sprintf("%s has %d pods", held.unit, c.boundOf(held.job)))
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// boundOf counts the pods of a job that are on nodes.
func (c *Charges) boundOf(job string) (n int) {
	for _, p := range c.pods {
		if p.bound && p.job == job {
			n++
		}
	}
	return n
}

// compare reports what has just passed the max of a quota.
func (c *Charges) compare(rule Rule, quota string, sum Resources, with func() string) {
	for resource, most := range c.max[quota] {
		if c.told.begins(strings.Join([]string{string(rule), quota, resource}, "/"), sum[resource] > most) {
			c.report(rule, quota, "%s %s of max %s, %s", resource, milli(sum[resource]), milli(most), with())
		}
	}
}

func (c *Charges) report(rule Rule, subject, format string, args ...any) {
	c.violations = append(c.violations, Violation{rule, subject, fmt.Sprintf(format, args...)})
}
