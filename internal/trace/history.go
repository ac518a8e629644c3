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

package trace

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// record is as much of a record of the scheduler's history as is read of it.
type record struct {
	Version   int                `json:"v"`
	Event     string             `json:"event"`
	Namespace string             `json:"namespace"`
	Unit      string             `json:"unit"`
	Queue     string             `json:"queue"`
	Created   time.Time          `json:"created"`
	Ran       float64            `json:"ranSeconds"`
	Limit     float64            `json:"limitSeconds"`
	Held      map[string]float64 `json:"held"`
}

// isHistory says whether a line begins a history.
func isHistory(line []byte) bool {
	var r record
	return json.Unmarshal(line, &r) == nil && r.Version > 0 && r.Event != ""
}

// readHistory reads the file of a history. Each end of a job is a job. Its size is the amount of a resource that it
// held, rounded up, and its namespace is the user.
func readHistory(in io.Reader, processors int64, resource string) (*Workload, Changes, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	var jobs []Job
	var origin time.Time
	for number := 1; lines.Scan(); number++ {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, Changes{}, fmt.Errorf("line %d: %w", number, err)
		}
		if r.Event != "Succeeded" && r.Event != "Failed" {
			continue
		}
		if len(jobs) == MaxJobs {
			return nil, Changes{}, fmt.Errorf("line %d: more than %d jobs: cut the history", number, MaxJobs)
		}
		if origin.IsZero() || r.Created.Before(origin) {
			origin = r.Created
		}
		j := Job{ID: r.Namespace + "/" + r.Unit, User: r.Namespace, Queue: r.Queue, Submit: time.Duration(r.Created.Unix())}
		if held := math.Ceil(r.Held[resource]); held <= MaxProcessors {
			j.Size = int64(held)
		}
		var err error
		if j.Run, err = seconds(r.Ran); err == nil {
			j.Limit, err = seconds(r.Limit)
		}
		if err != nil {
			return nil, Changes{}, fmt.Errorf("line %d: %w", number, err)
		}
		jobs = append(jobs, j)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, Changes{}, fmt.Errorf("a line is longer than %d bytes", maxLine)
	} else if err != nil {
		return nil, Changes{}, err
	}
	for i := range jobs {
		since, err := seconds(float64(int64(jobs[i].Submit) - origin.Unix()))
		if err != nil {
			return nil, Changes{}, err
		}
		jobs[i].Submit = since
	}
	return workload(jobs, processors)
}
