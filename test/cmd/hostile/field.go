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

// field is a place in an object, and its worst values.
type field struct {
	path   []string
	values []any
}

// spoil gives one to three fields of the object one of their worst values, or now and then something of another type.
func (g *generator) spoil(o object, fields []field) {
	const most, oneInTypes = 3, 8
	for range 1 + g.random.IntN(most) {
		f := pick(g, fields)
		value := pick(g, f.values)
		if g.random.IntN(oneInTypes) == 0 {
			value = pick(g, otherTypes)
		}
		put(o, clone(value), f.path...)
	}
}

// otherTypes are values of every JSON type.
var otherTypes = []any{nil, true, -1, 1.5, "text", []any{}, []any{nil, 1, "x"}, object{}, object{"a": object{"b": nil}}}

// wholeNumbers are the edges of 32 and 64 bits, and what is no whole number.
var wholeNumbers = []any{
	0, 1, -1, 2147483647, -2147483648, 2147483648, int64(9223372036854775807), 1e30, 0.5, "1", nil,
}

// amounts are the edges of quantities, and invalid ones. Amounts that fit a node are small, so that no pod has to be
// preempted for them. Preemption of pods depends on ResourceQuotas for priority classes, and not on the queue.
var amounts = []any{
	"0", "1n", "1m", "100m", "1", "0.0000000001", "1e-9", "100k", "1E", "1Ei",
	"9223372036854775807", "9223372036854775808", "-1", "-1E", "1e6", "1e30", "abc", "", " 1", "１",
	1, 100000000, 1.5, nil, long(1000),
}

// texts are what somebody may write for a name.
var texts = []any{
	"", " ", "no-such-name", victimQuota, hostileQuota, otherQuota,
	"koordinator-default-quota", "koordinator-system-quota", "koordinator-root-quota", companyQuota,
	"ключ-名前", "\u202egnirts", "a/b/c", "../../etc", "{{.}}", "%s%n", "null", "\u0000", "line\nline",
	long(64), long(254), long(4096),
}

// under appends keys to the path of fields, so that a table serves in several places.
func under(fields []field, path ...string) []field {
	moved := make([]field, len(fields))
	for i, f := range fields {
		moved[i] = field{append(append([]string{}, path...), f.path...), f.values}
	}
	return moved
}

func join(tables ...[]field) (all []field) {
	for _, t := range tables {
		all = append(all, t...)
	}
	return all
}
