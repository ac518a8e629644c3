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

package owner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Book knows which jobs are live and which units name them. It is not safe for concurrent use.
type Book[U Unit] struct {
	jobs  map[jobKey]*job[U]
	names map[Name]*namesakes[U]
	news  elections
}

// job is known because it is live or because a unit names it.
type job[U Unit] struct {
	// name that it is live under.
	name Name
	live bool
	// gone: it was said not to be live.
	gone bool
	// units that name it, in the order of the election.
	units []U
}

// namesakes has the UID that is live under a name, if any, and the units of managed jobs with that name and any UID.
type namesakes[U Unit] struct {
	live  string
	units []U
}

// NewBook returns an empty book.
func NewBook[U Unit]() *Book[U] {
	return &Book[U]{jobs: map[jobKey]*job[U]{}, names: map[Name]*namesakes[U]{}, news: elections{}}
}

// Len is the number of jobs and of names that are known.
func (b *Book[U]) Len() int { return len(b.jobs) + len(b.names) }

// Add takes a unit.
func (b *Book[U]) Add(u U) {
	c := u.Candidate()
	if c.Consumer.UID != "" {
		b.job(c.job()).insert(u)
	}
	if c.Managed {
		same := b.namesakes(c.name())
		same.units = append(same.units, u)
	}
}

// Remove takes a unit out. Its consumer must be the one that it was added with.
func (b *Book[U]) Remove(u U) { b.Change(u, nil) }

// Change runs f, which changes the candidate of a unit, or removes the unit if f is nil. Knowledge about the former and
// the new job of the unit stays.
func (b *Book[U]) Change(u U, f func()) {
	former := u.Candidate()
	key, n := former.job(), former.name()
	if j, ok := b.jobs[key]; ok {
		j.remove(u)
	}
	if same, ok := b.names[n]; ok && former.Managed {
		same.units = slices.DeleteFunc(same.units, func(other U) bool { return other == u })
	}
	if f != nil {
		f()
		b.Add(u)
	}
	b.prune(key)
	b.pruneName(n)
}

// Moved says that the standing of a unit has changed, or another thing that the election depends on.
func (b *Book[U]) Moved(u U) {
	c := u.Candidate()
	if j, ok := b.jobs[c.job()]; ok && len(j.units) > 1 {
		j.remove(u)
		j.insert(u)
	}
}

// Contest runs f, which may change the winner for the job of a candidate. It returns the units concerned: the former
// winner and the new one.
func (b *Book[U]) Contest(of *Candidate, f func()) (concerned []U) {
	before, some := b.Winner(of)
	f()
	after, still := b.Winner(of)
	if before == after {
		return nil
	}
	if name, live := b.liveName(of); !live || !of.Managed || name == of.Consumer.Name {
		b.news.note(of) // pods are never of a job whose name is another one
	}
	if some {
		concerned = append(concerned, before)
	}
	if still {
		concerned = append(concerned, after)
	}
	return concerned
}

// Elections lists, once and in order, the jobs whose winner has changed since the last call, and jobs that appeared or
// disappeared.
func (b *Book[U]) Elections() []unit.Consumer { return b.news.take() }

// StandsFor is the unit that stands for a job; false where none may. managed says that the job is of a kind that the
// controller manages. A job that is live has the name that it is live under, even if a unit names it otherwise.
func (b *Book[U]) StandsFor(c unit.Consumer, managed bool) (winner U, ok bool) {
	of := Candidate{Namespace: c.Namespace, Consumer: c, Managed: managed}
	if name, live := b.liveName(&of); live {
		of.Consumer.Name = name
	}
	return b.Winner(&of)
}

// Winner is the unit that stands for the job that a candidate names; false where none may.
func (b *Book[U]) Winner(of *Candidate) (winner U, ok bool) {
	if of.Consumer.UID == "" {
		return winner, false
	}
	j, known := b.jobs[of.job()]
	if !known {
		return winner, false
	}
	i, _ := slices.BinarySearchFunc(j.units, of.jobName(), func(at U, name string) int {
		c := at.Candidate()
		return cmp.Or(strings.Compare(c.jobName(), name), 1) // the first of that name
	})
	if i == len(j.units) {
		return winner, false
	}
	if c := j.units[i].Candidate(); c.jobName() != of.jobName() || c.Standing == Unfit {
		return winner, false
	}
	return j.units[i], true
}

// Liveness is what is known of the consumer that a unit names.
type Liveness int

const (
	// Live: it is there, or nobody has to know.
	Live Liveness = iota
	// NotSeen: nobody has said that it is there.
	NotSeen
	// Gone: it was said not to be there.
	Gone
	// Another: the name is that of another job, or the UID.
	Another
)

// Check says whether the consumer of a unit of a managed kind is the live job that it names, and in words why not.
func (b *Book[U]) Check(c *Candidate) (Liveness, string) {
	if !c.Managed || c.Consumer == (unit.Consumer{}) {
		return Live, ""
	}
	if c.Consumer.UID == "" {
		return NotSeen, fmt.Sprintf("consumerRef names %s without its uid", c.Consumer)
	}
	n := c.name()
	j := b.jobs[c.job()]
	if j != nil && j.live {
		if j.name != n {
			return Another, fmt.Sprintf("consumerRef names %s, but uid %s is of %s",
				c.Consumer, c.Consumer.UID, j.name.Consumer(c.Consumer.UID))
		}
		return Live, ""
	}
	if same, ok := b.names[n]; ok && same.live != "" {
		return Another, fmt.Sprintf("%s has uid %s, not %s", c.Consumer, same.live, c.Consumer.UID)
	}
	found := NotSeen
	if j != nil && j.gone {
		found = Gone
	}
	return found, fmt.Sprintf("%s with uid %s was not found, or is being deleted", c.Consumer, c.Consumer.UID)
}

// IsLive says whether the consumer was last said to be live.
func (b *Book[U]) IsLive(c unit.Consumer) bool {
	of := Candidate{Namespace: c.Namespace, Consumer: c}
	j, ok := b.jobs[of.job()]
	return ok && j.live
}

// liveName is the name under which the job that a candidate names is live; false if it is not live.
func (b *Book[U]) liveName(of *Candidate) (string, bool) {
	j, ok := b.jobs[of.job()]
	if !ok || !j.live {
		return "", false
	}
	return j.name.name, true
}

// SetLive takes that a job is live, or is not, and returns the units for which that may matter, in the order of their
// keys.
func (b *Book[U]) SetLive(c unit.Consumer, live bool) []U {
	of := Candidate{Namespace: c.Namespace, Consumer: c}
	b.news.note(&of)
	key, n := of.job(), of.name()
	j, same := b.job(key), b.namesakes(n)
	former := same.live
	if live && j.live && j.name == n && former == c.UID {
		return nil
	}
	j.live, j.gone = live, !live
	if live {
		j.name, same.live = n, c.UID
		formerKey := jobKey{key.scope, former}
		if other, ok := b.jobs[formerKey]; ok && former != c.UID {
			// A name has one object: the former one is gone, whether or not anybody saw it go.
			other.live = false
			b.prune(formerKey)
		}
	} else if former == c.UID {
		same.live = ""
	}
	concerned := slices.Concat(j.units, same.units)
	b.prune(key)
	b.pruneName(n)
	return byKey(concerned)
}

// byKey sorts units, each once.
func byKey[U Unit](units []U) []U {
	slices.SortFunc(units, func(a, b U) int { return strings.Compare(a.Candidate().Key, b.Candidate().Key) })
	return slices.Compact(units)
}

func (b *Book[U]) job(key jobKey) *job[U] {
	j, ok := b.jobs[key]
	if !ok {
		j = &job[U]{}
		b.jobs[key] = j
	}
	return j
}

func (b *Book[U]) namesakes(n Name) *namesakes[U] {
	same, ok := b.names[n]
	if !ok {
		same = &namesakes[U]{}
		b.names[n] = same
	}
	return same
}

// prune forgets a job that is not live and that no unit names, and pruneName the same of a name.
func (b *Book[U]) prune(key jobKey) {
	if j := b.jobs[key]; j != nil && !j.live && len(j.units) == 0 {
		delete(b.jobs, key)
	}
}

func (b *Book[U]) pruneName(n Name) {
	if same := b.names[n]; same != nil && same.live == "" && len(same.units) == 0 {
		delete(b.names, n)
	}
}

// insert keeps the order of the election.
func (j *job[U]) insert(u U) {
	c := u.Candidate()
	i, _ := slices.BinarySearchFunc(j.units, &c, func(at U, c *Candidate) int {
		other := at.Candidate()
		return compare(&other, c)
	})
	j.units = slices.Insert(j.units, i, u)
}

func (j *job[U]) remove(u U) {
	if i := slices.Index(j.units, u); i >= 0 {
		j.units = slices.Delete(j.units, i, i+1)
	}
}

// compare is the order of the election among units for the same job. It compares the standing, then prefers the unit
// that the job owns, then the older one, then compares UIDs.
func compare(a, b *Candidate) int {
	owned := func(c *Candidate) int {
		if c.Owned {
			return 0
		}
		return 1
	}
	return cmp.Or(
		strings.Compare(a.jobName(), b.jobName()), cmp.Compare(b.Standing, a.Standing), cmp.Compare(owned(a), owned(b)),
		a.Created.Compare(b.Created), strings.Compare(a.UID, b.UID), strings.Compare(a.Key, b.Key),
	)
}
