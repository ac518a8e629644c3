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

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// action is one request of the hostile tenant.
type action struct {
	at time.Duration // since the beginning
	// kind is what it is about, for the count.
	kind                      string
	method, path, contentType string
	// body may hold marks that are replaced when it is sent, see uidOf and victimUID.
	body []byte
	// name by which other actions name the created object. The name of the object itself can be worse.
	name string
	// lives is how long the object that it creates lives.
	lives time.Duration
}

// creates says whether it makes an object.
func (a *action) creates() bool { return a.method == http.MethodPost }

// The time for which objects live. It bounds how many there are at once.
const (
	shortest = 2 * time.Second
	longest  = 40 * time.Second
)

// object is JSON: a tenant may send what no Go type holds.
type object = map[string]any

// generator makes the actions of one seed.
type generator struct {
	random  *rand.Rand
	at      time.Duration
	names   int
	actions []action
}

// plan returns what the hostile tenant does in a run of that length, at a mean of rate requests in a second. The same
// seed gives the same.
func plan(seed uint64, length time.Duration, rate float64) []action {
	g := &generator{random: rand.New(rand.NewPCG(seed, 4))}
	lots := storyLots()
	for g.at < length {
		before := len(g.actions)
		lots[g.random.IntN(len(lots))](g)
		share := 2 * g.random.Float64() * float64(len(g.actions)-before) / rate
		g.at += time.Duration(share * float64(time.Second))
	}
	slices.SortStableFunc(g.actions, func(a, b action) int { return int(a.at - b.at) })
	return slices.DeleteFunc(g.actions, func(a action) bool { return a.at >= length })
}

// story is something that takes one or more requests.
type story func(*generator)

// storyLots has each story as often as its weight.
func storyLots() (lots []story) {
	for _, s := range stories {
		for range s.weight {
			lots = append(lots, s.tell)
		}
	}
	return lots
}

func (g *generator) name() string {
	g.names++
	return fmt.Sprintf("h-%05d", g.names)
}

func pick[T any](g *generator, values []T) T { return values[g.random.IntN(len(values))] }

// after is some time later than now, in steps of a story.
func (g *generator) after(steps int) time.Duration {
	const step = 1500 * time.Millisecond
	return g.at + time.Duration(steps)*step
}

// create has the object made now.
func (g *generator) create(kind, name string, o object) {
	g.createAs(kind, collection(kind, hostileNamespace), name, encode(o))
}

func (g *generator) createAs(kind, path, name string, body []byte) {
	lives := shortest + time.Duration(g.random.Int64N(int64(longest-shortest)))
	g.actions = append(g.actions, action{
		at: g.at, kind: kind, method: http.MethodPost, path: path, contentType: "application/json", body: body,
		name: name, lives: lives,
	})
}

// patch has an object of the tenant changed some steps later.
func (g *generator) patch(steps int, kind, name string, change object) {
	g.patchAt(steps, kind, collection(kind, hostileNamespace)+"/"+name, change)
}

func (g *generator) patchAt(steps int, kind, path string, change object) {
	g.actions = append(g.actions, action{
		at: g.after(steps), kind: kind, method: http.MethodPatch, path: path, contentType: "application/merge-patch+json",
		body: encode(change),
	})
}

// remove has an object deleted some steps later.
func (g *generator) remove(steps int, kind, path string) {
	g.removeWith(steps, kind, path, `{"propagationPolicy":"Background"}`)
}

// removeWith has an object deleted in a way.
func (g *generator) removeWith(steps int, kind, path, options string) {
	g.actions = append(g.actions, action{
		at: g.after(steps), kind: kind, method: http.MethodDelete, path: path, contentType: "application/json",
		body: []byte(options),
	})
}

// The kinds of objects, and what they are for the count.
const (
	jobKind    = "jobs"
	cronKind   = "cronjobs"
	podKind    = "pods"
	unitKind   = "queueunits"
	queueKind  = "queues"
	quotaKind  = "elasticquotas"
	configKind = "configmaps"
	// namespaceKind is refused to the tenant.
	namespaceKind = "namespaces"
)

var groups = map[string]string{
	jobKind: "/apis/batch/v1", cronKind: "/apis/batch/v1", podKind: "/api/v1", configKind: "/api/v1",
	unitKind: unitGroup, queueKind: unitGroup, quotaKind: "/apis/scheduling.sigs.k8s.io/v1alpha1",
}

// unitGroup is where units and queues are served.
const unitGroup = "/apis/scheduling.x-k8s.io/v1alpha1"

// collection is the path of all objects of a kind in a namespace.
func collection(kind, namespace string) string {
	return groups[kind] + "/namespaces/" + namespace + "/" + kind
}

// Marks in bodies: what only the API server knows. The UID of an object that was refused is one that nobody has.
const (
	victimUID = "@victim-uid@"
	uidMark   = "@uid:"
	podMark   = "@pod-of:" // in a path
)

// uidOf marks the place of the UID of an object of the tenant.
func uidOf(name string) string { return uidMark + name + "@" }

// podOfJob marks the place of the name of a pod of a job, in a path.
func podOfJob(job string) string { return podMark + job + "@" }

func encode(o object) []byte {
	body, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("the generator made something that is no JSON: %v", err))
	}
	return body
}

// put writes a value under the keys, and makes what is above it. Where an earlier value is in the way it is replaced.
func put(o object, value any, path ...string) {
	for _, key := range path[:len(path)-1] {
		inner, ok := o[key].(object)
		if !ok {
			inner = object{}
			o[key] = inner
		}
		o = inner
	}
	o[path[len(path)-1]] = value
}

// clone copies a value, so that what is put below it later is not put into a table.
func clone(value any) any {
	switch v := value.(type) {
	case object:
		copied := make(object, len(v))
		for key, inner := range v {
			copied[key] = clone(inner)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i, inner := range v {
			copied[i] = clone(inner)
		}
		return copied
	default:
		return value
	}
}

// long is a text of so many bytes.
func long(bytes int) string { return strings.Repeat("x", bytes) }
