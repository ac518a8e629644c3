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
	"time"
)

// Keys of the Secret. The server reads the first two; the next pair is trusted, and not served yet.
const (
	keyCertificate     = "tls.crt"
	keyKey             = "tls.key"
	keyNextCertificate = "next.crt"
	keyNextKey         = "next.key"
	// keyTrusted is the bundle.
	keyTrusted = "ca.crt"
)

// settle is the time between two steps. It is longer than what a mounted Secret, or the bundle, takes to be known
// everywhere.
const settle = 10 * time.Minute

// Step is what must be done.
type Step struct {
	// Data of the Secret from now on, and whether that is a change.
	Data    map[string][]byte
	Changed bool
	// Trusted is the bundle by which the server is verified from now on. It has to be known before Data is served.
	Trusted []byte
	// After is when the next step is due.
	After time.Duration
	// Reason says why something changed.
	Reason string
}

// Plan computes the next step from the Secret. It calls make if a new pair is needed.
func Plan(data map[string][]byte, host string, now time.Time, make func() (pair, error)) (Step, error) {
	served, err := readPair(data[keyCertificate], data[keyKey], host)
	if err != nil || !served.there() {
		return begin(err, make)
	}
	next, err := readPair(data[keyNextCertificate], data[keyNextKey], host)
	if err != nil {
		next = pair{} // another one is made
	}
	switch {
	case !next.there() && served.expires.Sub(now) <= spare:
		return trustNext(served, now, make)
	case !next.there():
		return rest(data, served, now), nil
	case now.Sub(next.made) >= settle || !served.expires.After(now):
		return serve(served, next), nil
	default:
		return Step{
			Data: dataOf(served, next, trusting(served, next)), Trusted: trusting(served, next),
			After: next.made.Add(settle).Sub(now), Changed: !bytes.Equal(data[keyTrusted], trusting(served, next)),
		}, nil
	}
}

// begin makes the first pair, or replaces one that cannot be read. There is no old one to be kept.
func begin(cause error, make func() (pair, error)) (Step, error) {
	first, err := make()
	if err != nil {
		return Step{}, err
	}
	reason := "there was no certificate"
	if cause != nil {
		reason = "the certificate could not be used: " + cause.Error()
	}
	trusted := trusting(first)
	return Step{
		Data: dataOf(first, pair{}, trusted), Changed: true, Trusted: trusted, After: life - spare, Reason: reason,
	}, nil
}

// trustNext makes the next pair, which is trusted together with the served one. If the served pair has expired already,
// the next one is served at once.
func trustNext(served pair, now time.Time, make func() (pair, error)) (Step, error) {
	next, err := make()
	if err != nil {
		return Step{}, err
	}
	if !served.expires.After(now) {
		step := serve(served, next)
		step.Reason = "the certificate had expired"
		return step, nil
	}
	trusted := trusting(served, next)
	return Step{
		Data: dataOf(served, next, trusted), Changed: true, Trusted: trusted, After: settle,
		Reason: "the certificate expires soon: the next one is trusted as well",
	}, nil
}

// serve has the next pair served. The former one is trusted until no replica serves it any more.
func serve(served, next pair) Step {
	trusted := trusting(served, next)
	return Step{
		Data: dataOf(next, pair{}, trusted), Changed: true, Trusted: trusted, After: settle,
		Reason: "the next certificate is served",
	}
}

// rest waits until the pair gets old. Twice the time of a step after it was made, it alone is trusted.
func rest(data map[string][]byte, served pair, now time.Time) Step {
	alone := trusting(served)
	if trusted := data[keyTrusted]; bytes.Contains(trusted, served.certificate) && !bytes.Equal(trusted, alone) {
		if left := served.made.Add(2 * settle).Sub(now); left > 0 {
			return Step{Data: data, Trusted: trusted, After: left}
		}
		return Step{
			Data: dataOf(served, pair{}, alone), Changed: true, Trusted: alone, After: settle,
			Reason: "the former certificate is not trusted any more",
		}
	}
	return Step{
		Data: dataOf(served, pair{}, alone), Changed: !bytes.Equal(data[keyTrusted], alone), Trusted: alone,
		After: served.expires.Add(-spare).Sub(now),
	}
}

func trusting(pairs ...pair) []byte {
	var bundle []byte
	for _, p := range pairs {
		bundle = append(bundle, p.certificate...)
	}
	return bundle
}

func dataOf(served, next pair, trusted []byte) map[string][]byte {
	data := map[string][]byte{keyCertificate: served.certificate, keyKey: served.key, keyTrusted: trusted}
	if next.there() {
		data[keyNextCertificate], data[keyNextKey] = next.certificate, next.key
	}
	return data
}
