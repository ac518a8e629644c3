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

package results

import (
	"io"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/coreplay"
)

// Judged writes how often the forecasts of a replay were right.
func Judged(out io.Writer, policy string, j *coreplay.Judged) error {
	p := screen.NewWriter(out)
	p.Printf("\nForecasts with policy %s, right within a minute or a quarter of the wait:\n", policy)
	rows := [][]string{{"JOBS", "ASKED", "RIGHT", "MEDIAN OF LAST WAITS", "BOUND HELD", "UNSTRETCHED"}}
	for _, row := range []struct {
		jobs  string
		score *coreplay.Score
	}{{"all", &j.All}, {"that waited for a minute", &j.Waited}} {
		s := row.score
		rows = append(rows, []string{row.jobs, integer(float64(s.Asked)), of(s.Right, s.Asked), of(s.Naive, s.Asked),
			of(s.Held, s.Bounded), of(s.Raw, s.Bounded)})
	}
	p.Table(rows)
	return p.Err()
}

// of is a part of a number in percent.
func of(some, all int) string {
	if all == 0 {
		return "-"
	}
	return partOf(float64(some) / float64(all))
}
