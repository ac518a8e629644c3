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

package certificate

import (
	"bytes"
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const host = "koord-jobqueue-visibility.koordinator-system.svc"

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func pairOf(t *testing.T, made time.Time) pair {
	t.Helper()
	p, err := newPair(host, made)
	require.NoError(t, err)
	return p
}

func TestPlan(t *testing.T) {
	old, next, fresh := pairOf(t, start), pairOf(t, start.Add(life-spare)), pairOf(t, start.Add(life))
	due := start.Add(life - spare)
	with := func(served, next pair, trusted ...pair) map[string][]byte {
		return dataOf(served, next, trusting(trusted...))
	}
	for name, c := range map[string]struct {
		data    map[string][]byte
		now     time.Time
		want    map[string][]byte
		changed bool
		after   time.Duration
	}{
		"nothing is there": {nil, start, with(fresh, pair{}, fresh), true, life - spare},
		"nobody can read what is there": {
			map[string][]byte{"tls.crt": []byte("?"), "tls.key": []byte("?")}, start, with(fresh, pair{}, fresh), true,
			life - spare,
		},
		"a key of another certificate": {
			map[string][]byte{"tls.crt": old.certificate, "tls.key": next.key}, start, with(fresh, pair{}, fresh), true,
			life - spare,
		},
		"all is well":            {with(old, pair{}, old), start, with(old, pair{}, old), false, life - spare},
		"the bundle is not that": {with(old, pair{}, fresh), start, with(old, pair{}, old), true, life - spare},
		"a second before it is due": {
			with(old, pair{}, old), due.Add(-time.Second), with(old, pair{}, old), false, time.Second,
		},
		"due: the next one is trusted": {with(old, pair{}, old), due, with(old, fresh, old, fresh), true, settle},
		"it is not known everywhere": {
			with(old, next, old, next), due.Add(time.Minute), with(old, next, old, next), false, settle - time.Minute,
		},
		"somebody took it from the bundle": {
			with(old, next, old), due.Add(time.Minute), with(old, next, old, next), true, settle - time.Minute,
		},
		"the next one cannot be read": {
			map[string][]byte{"tls.crt": old.certificate, "tls.key": old.key, "next.crt": []byte("?")},
			due, with(old, fresh, old, fresh), true, settle,
		},
		"known: it is served": {with(old, next, old, next), due.Add(settle), with(next, pair{}, old, next), true, settle},
		"the old one may be served still": {
			with(next, pair{}, old, next), due.Add(settle), with(next, pair{}, old, next), false, settle,
		},
		"nobody serves the old one": {
			with(next, pair{}, old, next), due.Add(2 * settle), with(next, pair{}, next), true, settle,
		},
		"expired while nobody looked": {
			with(old, pair{}, old), start.Add(life), with(fresh, pair{}, old, fresh), true, settle,
		},
		"expired in between": {with(old, next, old, next), start.Add(life), with(next, pair{}, old, next), true, settle},
	} {
		t.Run(name, func(t *testing.T) {
			step, err := Plan(c.data, host, c.now, func() (pair, error) { return fresh, nil })
			require.NoError(t, err)
			require.Equal(t, c.want, step.Data)
			require.Equal(t, c.changed, step.Changed)
			require.Equal(t, c.want["ca.crt"], step.Trusted)
			require.Equal(t, c.after, step.After)
		})
	}
}

// Whatever replica serves, and whatever bundle is known, of now or of a step before: they fit, for a year of looks.
func TestNobodyIsEverUnverified(t *testing.T) {
	var data map[string][]byte
	var servedBefore, trustedBefore []byte
	now, changes := start, 0
	for now.Before(start.Add(365 * 24 * time.Hour)) {
		step, err := Plan(data, host, now, func() (pair, error) { return newPair(host, now) })
		require.NoError(t, err)
		data = step.Data
		if servedBefore != nil && step.Changed {
			changes++
			verify(t, servedBefore, step.Trusted, now)
			verify(t, data[keyCertificate], trustedBefore, now)
		}
		verify(t, data[keyCertificate], step.Trusted, now)
		servedBefore, trustedBefore = data[keyCertificate], step.Trusted
		require.Positive(t, step.After)
		now = now.Add(step.After)
	}
	require.Equal(t, 6*3, changes, "every sixty days: trusted, served, alone")
}

func verify(t *testing.T, served, trusted []byte, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(trusted))
	for _, p := range bytes.SplitAfter(served, []byte("-----END CERTIFICATE-----\n")) {
		if len(p) == 0 {
			continue
		}
		block := decodePEM(t, p)
		_, err := block.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now})
		require.NoError(t, err)
		require.False(t, block.IsCA, "whoever has it can sign nothing")
	}
}
