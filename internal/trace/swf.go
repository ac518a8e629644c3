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
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxLine is the greatest length of a line of a trace.
const maxLine = 64 << 10

// Fields of a line in the Standard Workload Format 2.2, counted from 0.
// https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
const (
	fieldJob       = 0
	fieldSubmit    = 1
	fieldRun       = 3
	fieldUsed      = 4
	fieldRequested = 7
	fieldLimit     = 8
	fieldUser      = 11
	fieldGroup     = 12
	fieldQueue     = 14
	fields         = 18
)

// Read reads a trace in the Standard Workload Format or in Batsim's JSON, or the file of a history. The given number of
// processors counts instead of that of the trace, unless it is 0. Jobs of a history have so many of a resource.
func Read(in io.Reader, processors int64, resource string) (*Workload, Changes, error) {
	if processors < 0 || processors > MaxProcessors {
		return nil, Changes{}, fmt.Errorf("%d processors: must be between 1 and %d", processors, MaxProcessors)
	}
	buffered := bufio.NewReaderSize(in, maxLine)
	for {
		first, err := buffered.ReadByte()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, Changes{}, err
		}
		if err == nil && strings.IndexByte(" \t\r", first) >= 0 {
			continue
		}
		if err == nil {
			_ = buffered.UnreadByte() // a byte was just read
		}
		if start, _ := buffered.Peek(maxLine); isHistory(bytes.SplitN(start, []byte("\n"), 2)[0]) {
			return readHistory(buffered, processors, resource)
		}
		if first == '{' {
			return readBatsim(buffered, processors)
		}
		return readSWF(buffered, processors)
	}
}

// swfReader keeps what the lines so far say.
type swfReader struct {
	jobs              []Job
	maxProcs, maxNode int64
}

func readSWF(in io.Reader, processors int64) (*Workload, Changes, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	r, number := swfReader{}, 0
	for lines.Scan() {
		number++
		if err := r.line(lines.Text()); err != nil {
			return nil, Changes{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, Changes{}, fmt.Errorf("line %d: longer than %d bytes", number+1, maxLine)
	case err != nil:
		return nil, Changes{}, err
	case processors == 0 && r.maxProcs > 0:
		processors = r.maxProcs
	case processors == 0:
		processors = r.maxNode
	}
	return workload(r.jobs, processors)
}

func (r *swfReader) line(text string) error {
	if comment, ok := strings.CutPrefix(strings.TrimSpace(text), ";"); ok {
		r.header(comment)
		return nil
	}
	values := strings.Fields(text)
	if len(values) == 0 {
		return nil
	}
	if len(values) != fields {
		return fmt.Errorf("%d fields: a job of the Standard Workload Format has %d", len(values), fields)
	}
	if len(r.jobs) == MaxJobs {
		return fmt.Errorf("more than %d jobs: cut the trace", MaxJobs)
	}
	j, err := swfJob(values)
	if err != nil {
		return err
	}
	r.jobs = append(r.jobs, j)
	return nil
}

// header reads the size of the machine. The other headers have no effect on the order of jobs.
func (r *swfReader) header(comment string) {
	key, value, _ := strings.Cut(comment, ":")
	value, _, _ = strings.Cut(strings.TrimSpace(value), " ")
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < 0 || n > MaxProcessors {
		return
	}
	switch strings.TrimSpace(key) {
	case "MaxProcs":
		r.maxProcs = n
	case "MaxNodes":
		r.maxNode = n
	}
}

func swfJob(values []string) (j Job, err error) {
	j = Job{
		ID: values[fieldJob], User: known(values[fieldUser]), Group: known(values[fieldGroup]),
		Queue: known(values[fieldQueue]),
	}
	for _, t := range []struct {
		field int
		into  *time.Duration
	}{{fieldSubmit, &j.Submit}, {fieldRun, &j.Run}, {fieldLimit, &j.Limit}} {
		n, err := number(values, t.field)
		if err == nil {
			*t.into, err = seconds(n)
		}
		if err != nil {
			return j, fmt.Errorf("field %d: %w", t.field+1, err)
		}
	}
	for _, field := range []int{fieldRequested, fieldUsed} {
		n, err := number(values, field)
		if err != nil {
			return j, fmt.Errorf("field %d: %w", field+1, err)
		}
		if j.Size <= 0 {
			// A greater size is left out as any that is larger than the machine.
			j.Size = int64(min(n, MaxProcessors+1))
		}
	}
	return j, nil
}

func number(values []string, field int) (float64, error) {
	n, err := strconv.ParseFloat(values[field], 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, fmt.Errorf("%q is not a number", values[field])
	}
	return max(n, -1), nil // every negative number says: unknown
}

func known(value string) string {
	if value == "-1" {
		return ""
	}
	return value
}

// WriteSWF writes a workload in the Standard Workload Format. Names that are not numbers are written as unknown, jobs
// are numbered, and times are in whole seconds: a run time is at least one.
func WriteSWF(out io.Writer, w *Workload) error {
	buffered := bufio.NewWriter(out)
	fmt.Fprintf(buffered, "; Version: 2.2\n; MaxJobs: %d\n; MaxRecords: %d\n; MaxNodes: %d\n; MaxProcs: %d\n",
		len(w.Jobs), len(w.Jobs), w.Processors, w.Processors)
	for i := range w.Jobs {
		j := &w.Jobs[i]
		limit := int64(-1)
		if j.Limit > 0 {
			limit = wholeSeconds(j.Limit)
		}
		fmt.Fprintf(buffered, "%d %d -1 %d %d -1 -1 %d %d -1 1 %s %s -1 %s -1 -1 -1\n", i+1, int64(j.Submit/time.Second),
			wholeSeconds(j.Run), j.Size, j.Size, limit, numeral(j.User), numeral(j.Group), numeral(j.Queue))
	}
	return buffered.Flush()
}

func wholeSeconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func numeral(name string) string {
	if n, err := strconv.ParseUint(name, 10, 31); err != nil || strconv.FormatUint(n, 10) != name {
		return "-1"
	}
	return name
}
