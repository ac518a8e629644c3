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

package jobqueue

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/process/features"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// Option adds an extension of its own kind to the queue. All of an extension runs in the goroutine that decides: it
// must be fast, a pure function of its arguments, and keep nothing of them. A panic in it is recovered and parks the
// unit that it was asked about.
type Option func(*extensions)

// WithPolicy registers a policy by the name that Queue.spec.queuePolicy uses. The names of the built-in policies are
// taken.
func WithPolicy(name string, factory queue.Factory) Option {
	return func(x *extensions) {
		_, builtin := queue.Builtin()[name]
		_, twice := x.policies[name]
		switch {
		case !v1alpha1.QueuePolicy(name).WellFormed():
			x.refuse("%q is not the name of a policy", name)
		case builtin:
			x.refuse("policy %q is built in", name)
		case twice:
			x.refuse("policy %q is registered twice", name)
		case factory == nil:
			x.refuse("policy %q has no factory", name)
		default:
			x.policies[name] = factory
		}
	}
}

// Notifier is implemented by a check whose answers follow from more than the unit: a calendar, a budget, an object that
// it watches.
type Notifier interface {
	// Notify is called once, before the check is asked. From then on the check calls changed when its answers may be
	// other ones than before, from any goroutine; that returns at once. An admitted unit stays admitted.
	Notify(changed func())
}

// WithCheck registers a check that every unit must pass, after those that were registered before it. It may be a
// Notifier.
func WithCheck(check queue.Check) Option {
	return func(x *extensions) {
		if check == nil {
			x.refuse("a check is nil")
			return
		}
		x.checks = append(x.checks, check)
	}
}

// WithQueueOrder says which queue is served first; there is one order. Without it that is queue.FairOrder.
func WithQueueOrder(order queue.Order) Option {
	return func(x *extensions) {
		switch {
		case order == nil:
			x.refuse("the order of queues is nil")
		case x.order != nil:
			x.refuse("an order of queues is registered twice")
		default:
			x.order = order
		}
	}
}

// Extend adds what the options register to the configuration of a core: for tests of extensions, which need no
// scheduler.
func Extend(cfg *admission.Config, options ...Option) error {
	x, err := newExtensions(options)
	if err != nil {
		return err
	}
	cfg.Policies, cfg.Checks, cfg.Order = x.policies, x.checks, x.order
	return nil
}

// extensions are what options add to the core.
type extensions struct {
	policies map[string]queue.Factory
	checks   []queue.Check
	order    queue.Order
	errs     []error
}

func newExtensions(options []Option) (*extensions, error) {
	x := &extensions{policies: map[string]queue.Factory{}}
	for _, option := range options {
		option(x)
	}
	return x, errors.Join(x.errs...)
}

func (x *extensions) refuse(format string, args ...any) {
	x.errs = append(x.errs, fmt.Errorf(format, args...))
}

// notify tells the checks that want to know it whom to tell that their answers changed.
func (x *extensions) notify(changed func()) {
	for _, check := range x.checks {
		if n, ok := check.(Notifier); ok {
			n.Notify(changed)
		}
	}
}

// validate says what is wrong with the arguments of the plugin in a scheduler with these extensions.
func (x *extensions) validate(args *config.JobQueueArgs, path *field.Path) field.ErrorList {
	errs := args.Validate(path)
	known := slices.Concat(slices.Collect(maps.Keys(queue.Builtin())), slices.Collect(maps.Keys(x.policies)))
	slices.SortFunc(known, strings.Compare)
	if !slices.Contains(known, args.DefaultQueuePolicy) {
		errs = append(errs, field.NotSupported(path.Child("defaultQueuePolicy"), args.DefaultQueuePolicy, known))
	}
	return append(errs, features.Validate(args.FeatureGates, path.Child("featureGates"))...)
}
