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

package history

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// version of the format of the file.
const version = 1

// Record is one transition of a unit. docs/operators/visibility.md describes the fields.
type Record struct {
	Time       time.Time            `json:"time"`
	Event      v1alpha1.RecordEvent `json:"event"`
	Namespace  string               `json:"namespace"`
	Unit       string               `json:"unit"`
	UID        string               `json:"uid"`
	Kind       string               `json:"kind,omitempty"`
	Job        string               `json:"job,omitempty"`
	Queue      string               `json:"queue,omitempty"`
	Quota      string               `json:"quota,omitempty"`
	Priority   int32                `json:"priority"`
	Attempt    int64                `json:"attempt"`
	Created    time.Time            `json:"created"`
	Requested  Amounts              `json:"requested,omitzero"`
	Held       Amounts              `json:"held,omitzero"`
	HeldBefore Amounts              `json:"heldBefore,omitzero"`
	Reason     string               `json:"reason,omitempty"`
	Waited     float64              `json:"waitedSeconds,omitempty"`
	Ran        float64              `json:"ranSeconds,omitempty"`
	Limit      float64              `json:"limitSeconds,omitempty"`
	Observed   bool                 `json:"observed,omitempty"`
}

// line is a record as the file has it.
type line struct {
	V int `json:"v"`
	*Record
}

// encode returns the line of the file, with its end.
func (r *Record) encode() ([]byte, error) {
	text, err := json.Marshal(line{version, r})
	return append(text, '\n'), err
}

// decode reads a line of the file.
func decode(text []byte) (*Record, error) {
	l := line{Record: &Record{}}
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, err
	}
	if l.V != version || l.Time.IsZero() || l.Event == "" {
		return nil, fmt.Errorf("not a record of version %d", version)
	}
	return l.Record, nil
}

// identity tells a record of another process from one about another transition: each happens once per attempt.
type identity struct {
	uid     string
	event   v1alpha1.RecordEvent
	attempt int64
	// at is set for transitions that repeat.
	at time.Time
}

func (r *Record) identity() identity {
	id := identity{uid: r.UID, event: r.Event, attempt: r.Attempt}
	switch r.Event {
	case v1alpha1.RecordChanged, v1alpha1.RecordActivated, v1alpha1.RecordDeactivated, v1alpha1.RecordResized:
		id.at = r.Time.Truncate(time.Minute)
	default:
	}
	return id
}

// recordBytes is about what a record takes without its texts.
const recordBytes = 400

// size is about what the record takes in memory.
func (r *Record) size() int {
	n := recordBytes + len(r.Namespace) + len(r.Unit) + len(r.UID) + len(r.Kind) + len(r.Job) + len(r.Queue) +
		len(r.Quota) + len(r.Reason)
	for _, list := range []Amounts{r.Requested, r.Held, r.HeldBefore} {
		for _, it := range list.Items() {
			n += 24 + len(it.Name)
		}
	}
	return n
}

// Amounts are written as numbers: cores, bytes, devices.
type Amounts struct{ resources.List }

// IsZero leaves the field out if there is nothing in it.
func (a Amounts) IsZero() bool { return a.Len() == 0 }

// MarshalJSON implements json.Marshaler.
func (a Amounts) MarshalJSON() ([]byte, error) {
	numbers := make(map[string]json.Number, a.Len())
	for _, it := range a.Items() {
		text := strconv.FormatInt(it.Amount, 10)
		if it.Name == string(corev1.ResourceCPU) {
			text = strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%03d", it.Amount/1000, it.Amount%1000), "0"), ".")
		}
		numbers[it.Name] = json.Number(text)
	}
	return json.Marshal(numbers)
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *Amounts) UnmarshalJSON(text []byte) error {
	var numbers map[string]json.Number
	if err := json.Unmarshal(text, &numbers); err != nil {
		return err
	}
	quantities := make(map[string]resource.Quantity, len(numbers))
	for name, number := range numbers {
		q, err := resource.ParseQuantity(number.String())
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		quantities[name] = q
	}
	list, err := resources.FromQuantities(quantities)
	a.List = list
	return err
}
