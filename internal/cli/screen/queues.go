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

package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

// mostQuotas of a queue are named in its row, unless it is wide.
const mostQuotas = 2

// Queues writes a row for each queue.
func Queues(out io.Writer, queues []visibility.Queue, wide bool) error {
	header := []string{"NAME", "QUOTAS", "POLICY", "WAITING", "ADMITTED", "FIRST", "STOP"}
	if wide {
		header = append(header, "PRIORITY", "PARKED", "EXISTS")
	}
	rows := [][]string{header}
	for i := range queues {
		q, s := &queues[i], &queues[i].Status
		row := []string{
			q.Name, quotasOf(s.Quotas, wide), s.Policy, fmt.Sprint(s.Pending), fmt.Sprint(s.Admitted), firstOf(s), stopOf(s),
		}
		if wide {
			row = append(row, fmt.Sprint(s.Priority), fmt.Sprint(s.Parked), fmt.Sprint(s.Exists))
		}
		rows = append(rows, row)
	}
	return table(out, "", rows)
}

func quotasOf(quotas []string, wide bool) string {
	if slices.Equal(quotas, []string{"*"}) {
		return "(all)"
	}
	if len(quotas) <= mostQuotas || wide {
		return strings.Join(quotas, ",")
	}
	return fmt.Sprintf("%s +%d", strings.Join(quotas[:mostQuotas], ","), len(quotas)-mostQuotas)
}

// firstOf a line is NAMESPACE/KIND/NAME.
func firstOf(s *visibility.QueueStatus) string {
	namespace, name, known := strings.Cut(s.First, "/")
	if !known {
		return ""
	}
	return namespace + "/" + answers.JobName(s.FirstKind, s.FirstJob, name)
}

func stopOf(s *visibility.QueueStatus) string {
	if s.StopPolicy == "None" {
		return ""
	}
	return s.StopPolicy
}
