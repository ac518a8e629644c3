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
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// tenant carries out actions as the hostile user: each at its time, and once. Refusals of the API server are counted.
type tenant struct {
	client *http.Client
	url    string
	// victim returns the UID of some job of the victim.
	victim func() string
	// managed is false where units are of a kind that nothing reads, see baseline.go.
	managed bool

	mu   sync.Mutex
	uids map[string]string // name in the plan -> UID
	done map[string]*count // by kind
	live map[string]*made  // by name in the plan
}

type count struct {
	Made    int `json:"made"`    // objects
	Changed int `json:"changed"` // by changes that were taken
	Refused int `json:"refused"` // requests
}

// made is an object that the tenant made.
type made struct {
	path string
	ends time.Duration
}

func newTenant(config *rest.Config, managed bool, victim func() string) (*tenant, error) {
	config = rest.CopyConfig(config)
	config.Impersonate.UserName = hostileUser
	client, err := rest.HTTPClientFor(config)
	return &tenant{
		client: client, url: config.Host, victim: victim, managed: managed,
		uids: map[string]string{}, done: map[string]*count{}, live: map[string]*made{},
	}, err
}

// run returns when all actions were sent and answered, or ctx ends.
func (t *tenant) run(ctx context.Context, begin time.Time, actions []action) {
	const atOnce = 32
	var group errgroup.Group
	group.SetLimit(atOnce)
	defer group.Wait() //nolint:errcheck // no answer is an error
	for i := range actions {
		if !controlplane.Sleep(ctx, time.Until(begin.Add(actions[i].at))) {
			return
		}
		t.removeOld(ctx, actions[i].at)
		group.Go(func() error {
			t.act(ctx, &actions[i])
			return nil
		})
	}
}

func (t *tenant) act(ctx context.Context, a *action) {
	code, answer := t.send(ctx, a.method, t.named(ctx, t.pathOf(a.path)), a.contentType, t.fill(a.body))
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.done[a.kind]
	if c == nil {
		c = &count{}
		t.done[a.kind] = c
	}
	switch {
	case code >= http.StatusMultipleChoices || code == 0:
		c.Refused++
	case a.creates():
		c.Made++
		t.note(a, answer)
	default:
		c.Changed++
	}
}

// note remembers what was made.
func (t *tenant) note(a *action, answer []byte) {
	var o struct {
		Metadata struct{ Name, UID string }
	}
	if json.Unmarshal(answer, &o) != nil {
		return
	}
	t.uids[a.name] = o.Metadata.UID
	t.live[a.name] = &made{path: t.pathOf(a.path) + "/" + o.Metadata.Name, ends: a.at + a.lives}
}

// removeOld deletes what has lived for as long as it should.
func (t *tenant) removeOld(ctx context.Context, now time.Duration) {
	t.mu.Lock()
	var old []string
	for name, m := range t.live {
		if m.ends <= now {
			old = append(old, m.path)
			delete(t.live, name)
		}
	}
	t.mu.Unlock()
	for _, path := range old {
		go t.remove(ctx, path)
	}
}

// remove takes the finalizers of an object and deletes it.
func (t *tenant) remove(ctx context.Context, path string) {
	t.send(ctx, http.MethodPatch, path, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	t.send(ctx, http.MethodDelete, path, "application/json",
		[]byte(`{"propagationPolicy":"Background","gracePeriodSeconds":0}`))
}

// send returns the code of the answer, 0 if there was none.
func (t *tenant) send(ctx context.Context, method, path, contentType string, body []byte) (code int, answer []byte) {
	const patience, most = 30 * time.Second, 4 << 20
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, t.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil
	}
	request.Header.Set("Content-Type", contentType)
	response, err := t.client.Do(request)
	if err != nil {
		return 0, nil
	}
	defer response.Body.Close() //nolint:errcheck // read only
	answer, err = io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return 0, nil
	}
	return response.StatusCode, answer
}

var uidMarks = regexp.MustCompile(uidMark + `(h-\d+)@`)

var podMarks = regexp.MustCompile(podMark + `(h-\d+)@`)

// named puts the name of some pod of a job for its mark.
func (t *tenant) named(ctx context.Context, path string) string {
	return podMarks.ReplaceAllStringFunc(path, func(mark string) string {
		job := podMarks.FindStringSubmatch(mark)[1]
		names, err := t.names(ctx, collection(podKind, hostileNamespace)+"?labelSelector=job-name%3D"+job)
		if err != nil || len(names) == 0 {
			return "none"
		}
		return names[0]
	})
}

// nobodysUID is the UID of what was refused.
const nobodysUID = "00000000-0000-0000-0000-000000000000"

// fill puts UIDs for their marks.
func (t *tenant) fill(body []byte) []byte {
	body = bytes.ReplaceAll(body, []byte(victimUID), []byte(t.victim()))
	body = uidMarks.ReplaceAllFunc(body, func(mark []byte) []byte {
		t.mu.Lock()
		defer t.mu.Unlock()
		if uid := t.uids[string(uidMarks.FindSubmatch(mark)[1])]; uid != "" {
			return []byte(uid)
		}
		return []byte(nobodysUID)
	})
	if !t.managed {
		body = twinOf(body)
	}
	return body
}

func (t *tenant) pathOf(path string) string {
	if !t.managed {
		path = string(twinOf([]byte(path)))
	}
	return path
}

// counts returns the requests so far, by kind.
func (t *tenant) counts() map[string]count {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]count{}
	for kind, c := range t.done {
		all[kind] = *c
	}
	return all
}

// objects sums what was made.
func objects(counts map[string]count) (n int) {
	for c := range maps.Values(counts) {
		n += c.Made
	}
	return n
}

// clear deletes all that the tenant's namespaces hold, and returns when nothing is there any more.
func (t *tenant) clear(ctx context.Context) error {
	all := []string{collection(jobKind, aliasedNamespace), collection(podKind, aliasedNamespace)}
	for _, kind := range []string{cronKind, jobKind, unitKind, podKind} {
		all = append(all, collection(kind, hostileNamespace))
	}
	for {
		left := 0
		for _, path := range all {
			names, err := t.names(ctx, path)
			if err != nil {
				return fmt.Errorf("list what is left of %s: %w", path, err)
			}
			for _, name := range names {
				t.remove(ctx, t.pathOf(path)+"/"+name)
			}
			left += len(names)
		}
		if left == 0 {
			return nil
		}
		if !controlplane.Sleep(ctx, time.Second) {
			return fmt.Errorf("%d objects of the hostile tenant are left", left)
		}
	}
}

// names of what is there in a collection, of which its path may ask for some.
func (t *tenant) names(ctx context.Context, path string) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+t.pathOf(path), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	response, err := t.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(list.Items))
	for _, item := range list.Items {
		names = append(names, item.Metadata.Name)
	}
	return names, nil
}
