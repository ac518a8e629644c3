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

package unit

import (
	"fmt"
	"slices"
	"time"
)

// CheckState is what a check answers.
type CheckState string

// States of checks. An unknown state is no answer.
const (
	CheckPending  CheckState = "Pending"
	CheckReady    CheckState = "Ready"    // the unit may go
	CheckRetry    CheckState = "Retry"    // not now; its quota is for others until then
	CheckRejected CheckState = "Rejected" // never as it is
)

// CheckAnswer is one of those that the object of a unit has about what it holds.
type CheckAnswer struct {
	Name    string
	State   CheckState
	Message string
	// RetryAfter is the least time until a unit is tried again; zero leaves it to the back-off.
	RetryAfter time.Duration
}

// CheckAnswers are all of a reservation.
type CheckAnswers struct {
	Answers []CheckAnswer
	// Conflict says in words how answers contradict each other; empty if they do not.
	Conflict string
}

// String has all that the answers say.
func (a *CheckAnswers) String() string {
	if a == nil {
		return "none"
	}
	return fmt.Sprint(*a)
}

// Same says whether both are the same answers.
func (a *CheckAnswers) Same(o *CheckAnswers) bool {
	if a == nil || o == nil {
		return a == o
	}
	return a.Conflict == o.Conflict && slices.Equal(a.Answers, o.Answers)
}

// To is the answer of a check, and whether it was asked.
func (a *CheckAnswers) To(name string) (answer CheckAnswer, asked bool) {
	if a == nil {
		return answer, false
	}
	i := slices.IndexFunc(a.Answers, func(of CheckAnswer) bool { return of.Name == name })
	if i < 0 {
		return answer, false
	}
	return a.Answers[i], true
}

// Asked are the answers of a unit for which quota has just been reserved.
func Asked(names []string) *CheckAnswers {
	a := &CheckAnswers{}
	for _, name := range names {
		a.Answers = append(a.Answers, CheckAnswer{Name: name, State: CheckPending})
	}
	return a
}
