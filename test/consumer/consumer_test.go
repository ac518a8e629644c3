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

// Package consumer_test is a module of somebody else: a scheduler with a policy and a check of its own, and a controller
// of admission checks. It uses the packages that other modules may import, so it fails if a change breaks them.
package consumer_test

import (
	"context"
	"strings"
	"testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/admissioncheck"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/plugin/jobqueue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/scheduler"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
)

// byName orders units by their names.
type byName struct{}

func (byName) Compare(a, b queue.Item) int { return strings.Compare(a.Key, b.Key) }

func (byName) Blocks(int32) bool { return false }

// most is the largest request that a unit may have.
type most struct{ request resources.List }

func (most) Key(u unit.Unit) string { return u.UID }

func (m most) Check(u unit.Unit) (unit.Reason, string) {
	if m.request.Covers(u.Request) {
		return "", ""
	}
	return "TooLarge", "the request is too large"
}

func budget(context.Context, *v1alpha1.QueueUnit, *v1beta1.AdmissionCheck) (admissioncheck.Answer, error) {
	return admissioncheck.Answer{State: admissioncheck.Ready}, nil
}

func TestTheProgramsOfAnotherModule(t *testing.T) {
	command, err := scheduler.NewCommand(
		jobqueue.WithPolicy("ByName", func(int32) queue.Policy { return byName{} }),
		jobqueue.WithCheck(most{resources.FromMap(map[string]int64{"cpu": 1000})}),
	)
	if err != nil || command == nil {
		t.Fatal(err)
	}
	check := admissioncheck.Controller{ControllerName: "example.com/budget", Check: budget}
	if check.Check == nil || len(submit.Drivers()) == 0 {
		t.Fatal("a program of another module needs both")
	}
}
