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

package snapshot

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// Bounds of a document. A million units have more, and nobody waits for their answer.
const (
	mostBytes = 512 << 20
	mostUnits = 500_000
	mostNamed = 20_000 // quotas, queues, runs
	mostDeep  = 64     // levels of quotas
)

// Years of a document, in which sums of times and spans stay within bounds.
const (
	firstYear = 1970
	lastYear  = 2199
)

// Read a document that somebody else may have written.
func Read(in io.Reader) (*Snapshot, error) {
	text, err := plain(in)
	if err != nil {
		return nil, err
	}
	d := &document{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(d)
	if head := (struct{ Version int }{}); json.Unmarshal(text, &head) == nil && head.Version != version {
		return nil, fmt.Errorf("version %d: this program reads version %d", head.Version, version)
	}
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("something follows the document")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("not a snapshot: %w", err)
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("not a snapshot: %w", err)
	}
	return d.read(), nil
}

// plain is the text of a document, which may be compressed.
func plain(in io.Reader) ([]byte, error) {
	b := bufio.NewReader(in)
	in = b
	if magic, _ := b.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, err
		}
		in = z
	}
	text, err := io.ReadAll(io.LimitReader(in, mostBytes+1))
	if err == nil && len(text) > mostBytes {
		err = fmt.Errorf("more than %d bytes", mostBytes)
	}
	return text, err
}

func (d *document) read() *Snapshot {
	s := &Snapshot{
		At: d.At, Extended: d.Extended,
		Facts: &virtual.Facts{Config: admission.Config{
			ClaimTimeout: time.Duration(d.Config.ClaimTimeout), ClaimAfter: time.Duration(d.Config.ClaimAfter),
			PartialAdmission: d.Config.PartialAdmission,
		}},
	}
	for i := range d.Quotas {
		s.Facts.Quotas = append(s.Facts.Quotas, d.Quotas[i].read())
	}
	for i := range d.Queues {
		s.Facts.Queues = append(s.Facts.Queues, d.Queues[i].read())
	}
	for i := range d.Units {
		s.Facts.Units = append(s.Facts.Units, d.Units[i].read())
	}
	for _, r := range d.Runs {
		s.Runs = append(s.Runs, forecast.Ended{
			User: r.User, Queue: r.Queue, Size: r.Size, Limit: time.Duration(r.Limit), Ran: time.Duration(r.Ran),
		})
	}
	return s
}

// check says which field is wrong.
func (d *document) check() error {
	for _, part := range []struct {
		field     string
		has, most int
	}{
		{"units", len(d.Units), mostUnits}, {"quotas", len(d.Quotas), mostNamed}, {"queues", len(d.Queues), mostNamed},
		{"runs", len(d.Runs), mostNamed},
	} {
		if part.has > part.most {
			return fmt.Errorf("%s: %d are more than %d", part.field, part.has, part.most)
		}
	}
	if d.At.IsZero() {
		return errors.New("at: no time")
	}
	if err := checkTimes("at", d.At); err != nil {
		return err
	}
	if err := d.checkQuotas(); err != nil {
		return err
	}
	queues := names{}
	for i := range d.Queues {
		if err := queues.add(fmt.Sprintf("queues[%d].name", i), d.Queues[i].Name); err != nil {
			return err
		}
	}
	units := names{}
	for i := range d.Units {
		u, field := &d.Units[i], fmt.Sprintf("units[%d].", i)
		if err := units.add(field+"key", u.Key); err != nil {
			return err
		}
		if err := u.check(field); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) checkQuotas() error {
	quotas, parents := names{}, map[string]string{}
	for i := range d.Quotas {
		q := &d.Quotas[i]
		if err := quotas.add(fmt.Sprintf("quotas[%d].name", i), q.Name); err != nil {
			return err
		}
		if shares.Part(q.Part) == shares.Top && q.Parent != "" {
			return fmt.Errorf("quotas[%d].parent: a top has none", i)
		}
		parents[q.Name] = q.Parent
	}
	for i := range d.Quotas {
		for name, levels := d.Quotas[i].Name, 0; name != ""; name = parents[name] {
			if levels++; levels > mostDeep {
				return fmt.Errorf("quotas[%d].parent: more than %d levels, or a loop", i, mostDeep)
			}
		}
	}
	return nil
}

func (u *unitSpec) check(field string) error {
	if namespace, name, found := strings.Cut(u.Key, "/"); !found || namespace == "" || name == "" {
		return fmt.Errorf("%skey: %q is not NAMESPACE/NAME", field, u.Key)
	}
	for name, n := range map[string]int64{
		"pods": u.Pods, "attempts": u.Attempts, "heldPods": u.HeldPods, "requeues": u.Requeues,
	} {
		if n < 0 {
			return fmt.Errorf("%s%s: %d is below zero", field, name, n)
		}
	}
	if u.Sizes != nil {
		for i, set := range u.Sizes.Sets {
			if set.Count < 0 || set.Least < 0 {
				return fmt.Errorf("%ssizes.sets[%d]: a number below zero", field, i)
			}
		}
	}
	return checkTimes(field, u.Created, u.RequeueAt, u.Admitted, u.RanSince)
}

func checkTimes(field string, times ...time.Time) error {
	for _, t := range times {
		if year := t.UTC().Year(); !t.IsZero() && (year < firstYear || year > lastYear) {
			return fmt.Errorf("%s: %s is not between %d and %d", strings.TrimSuffix(field, "."), t.Format(time.RFC3339),
				firstYear, lastYear)
		}
	}
	return nil
}

// names that were used.
type names map[string]bool

func (n names) add(field, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%s: no name", field)
	case n[name]:
		return fmt.Errorf("%s: %q is there twice", field, name)
	}
	n[name] = true
	return nil
}
