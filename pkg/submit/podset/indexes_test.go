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

package podset

import (
	"errors"
	"strings"
	"testing"
)

// A list of indexes has single ones and ranges; whatever else is there is an error that names the field.
func TestIndexes(t *testing.T) {
	at := PathOf(".status.failedIndexes")
	for _, c := range []struct {
		value any
		n     int64
		wrong bool
	}{
		{nil, 0, false},
		{"", 0, false},
		{"0", 1, false},
		{"1,3-5,7", 5, false},
		{"0-2147483647", 2147483647, false},
		{"0-2147483647,0-2147483647", 2147483647, false},
		{"a", 0, true},
		{"1,,2", 0, true},
		{"5-3", 0, true},
		{"-1", 0, true},
		{"1-2147483648", 0, true},
		{int64(3), 0, true},
	} {
		n, err := indexes(c.value, at)
		if c.wrong {
			if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), "failedIndexes") {
				t.Errorf("%v: error %v, which does not name the field", c.value, err)
			}
			continue
		}
		if err != nil || n != c.n {
			t.Errorf("%v: %d, error %v, instead of %d", c.value, n, err, c.n)
		}
	}
}
