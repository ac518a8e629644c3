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
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// maxBatsim is the greatest length of a workload of Batsim.
const maxBatsim = 256 << 20

// batsimWorkload is a workload of Batsim. https://batsim.readthedocs.io/en/latest/input-workload.html
type batsimWorkload struct {
	Processors int64 `json:"nb_res"`
	Jobs       []struct {
		ID      json.RawMessage `json:"id"` // a number or a string
		Submit  float64         `json:"subtime"`
		Size    int64           `json:"res"`
		Limit   float64         `json:"walltime"`
		Profile string          `json:"profile"`
	} `json:"jobs"`
	Profiles map[string]struct {
		Type  string  `json:"type"`
		Delay float64 `json:"delay"`
	} `json:"profiles"`
}

// readBatsim reads a workload of Batsim. Only profiles of the type delay say a run time.
func readBatsim(in io.Reader, processors int64) (*Workload, Changes, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxBatsim+1))
	if err != nil {
		return nil, Changes{}, err
	}
	if len(data) > maxBatsim {
		return nil, Changes{}, fmt.Errorf("longer than %d bytes: cut the workload", maxBatsim)
	}
	var from batsimWorkload
	if err := json.Unmarshal(data, &from); err != nil {
		return nil, Changes{}, atLine(data, err)
	}
	if len(from.Jobs) > MaxJobs {
		return nil, Changes{}, fmt.Errorf("more than %d jobs: cut the workload", MaxJobs)
	}
	if from.Processors > MaxProcessors {
		return nil, Changes{}, fmt.Errorf("nb_res: %d: must be between 1 and %d", from.Processors, MaxProcessors)
	}
	if processors == 0 {
		processors = from.Processors
	}
	jobs := make([]Job, 0, len(from.Jobs))
	for i := range from.Jobs {
		b := &from.Jobs[i]
		j := Job{ID: strings.Trim(string(b.ID), `"`), Size: b.Size}
		profile, ok := from.Profiles[b.Profile]
		if !ok {
			return nil, Changes{}, fmt.Errorf("job %s: no profile is called %q", j.ID, b.Profile)
		}
		if !strings.EqualFold(strings.TrimSuffix(profile.Type, "Profile"), "delay") {
			profile.Delay = 0
		}
		for _, t := range []struct {
			field string
			value float64
			into  *time.Duration
		}{{"subtime", b.Submit, &j.Submit}, {"walltime", b.Limit, &j.Limit}, {"delay", profile.Delay, &j.Run}} {
			if *t.into, err = seconds(t.value); err != nil {
				return nil, Changes{}, fmt.Errorf("job %s: %s: %w", j.ID, t.field, err)
			}
		}
		jobs = append(jobs, j)
	}
	return workload(jobs, processors)
}

// atLine adds to an error of the decoder the line at which it is.
func atLine(data []byte, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &syntax) {
		offset = syntax.Offset
	} else if errors.As(err, &mismatch) {
		offset = mismatch.Offset
	}
	if offset < 0 || offset > int64(len(data)) {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:offset], []byte{'\n'}), err)
}
