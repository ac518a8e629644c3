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

// Package callers has the people who use one server: what is kept for each bearer token, and how much one of them may
// have open. It keeps no token: the key of an entry is a hash.
package callers

import (
	"context"
	"crypto/sha256"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
)

const (
	// most tokens have an entry. The one that was used least recently goes first.
	most = 200
	// idle is how long an entry stays without a request. An open tab asks more often.
	idle = 2 * time.Minute
)

// Caller is somebody whom the API server knows.
type Caller struct {
	// Name is the user name at the API server.
	Name string
	// Source has the rights of the caller.
	Source facts.Source
}

// Open asks the API server who has a token. Its error is that of the API server.
type Open func(ctx context.Context, token string) (*Caller, error)

// Known keeps the callers of the last minutes.
type Known struct {
	open Open
	kept *cache.LRUExpireCache // callers by the hash of their token
}

// New knows nobody.
func New(c cache.Clock, open Open) *Known {
	return &Known{open: open, kept: cache.NewLRUExpireCacheWithClock(most, c)}
}

// Of returns the caller who has a token. The API server is asked once while the entry stays, and then with each
// question of the source. A token that it refuses gets no entry.
func (k *Known) Of(ctx context.Context, token string) (*Caller, error) {
	key := sha256.Sum256([]byte(token))
	if kept, known := k.kept.Get(key); known {
		k.kept.Add(key, kept, idle)
		return kept.(*Caller), nil
	}
	c, err := k.open(ctx, token)
	if err != nil {
		return nil, err
	}
	k.kept.Add(key, c, idle)
	return c, nil
}
