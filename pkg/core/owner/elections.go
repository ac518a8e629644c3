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

package owner

import (
	"cmp"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// elections are the jobs for which another unit may stand than when they were taken.
type elections map[unit.Consumer]struct{}

// note that another unit may stand for the job of this one.
func (e elections) note(c *Candidate) {
	if c.Consumer.UID != "" {
		job := c.Consumer
		job.Namespace = c.Namespace
		e[job] = struct{}{}
	}
}

// take lists them, once and in order.
func (e elections) take() []unit.Consumer {
	if len(e) == 0 {
		return nil
	}
	list := make([]unit.Consumer, 0, len(e))
	for c := range e {
		list = append(list, c)
	}
	clear(e)
	slices.SortFunc(list, func(a, b unit.Consumer) int {
		return cmp.Or(strings.Compare(a.UID, b.UID), strings.Compare(a.Kind, b.Kind),
			strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return list
}
