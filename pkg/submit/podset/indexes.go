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
	"fmt"
	"math"
	"strconv"
	"strings"
)

// indexes is how many indexes a text lists, as the status of an Indexed Job does: "1,3-5" lists four. An absent text
// lists none.
func indexes(value any, at Path) (n int64, err error) {
	text, isText := value.(string)
	switch {
	case value == nil || isText && text == "":
		return 0, nil
	case !isText:
		return 0, fmt.Errorf("%w: %s is not a list of indexes", ErrMalformed, at)
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, several := strings.Cut(part, "-")
		first, err := strconv.ParseInt(from, 10, 32)
		last := first
		if err == nil && several {
			last, err = strconv.ParseInt(to, 10, 32)
		}
		if err != nil || first < 0 || last < first {
			return 0, fmt.Errorf("%w: %s is not a list of indexes", ErrMalformed, at)
		}
		n = min(n+last-first+1, math.MaxInt32)
	}
	return n, nil
}
