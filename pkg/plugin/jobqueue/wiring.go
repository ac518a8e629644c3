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
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeschedulerconfigv1 "k8s.io/kube-scheduler/config/v1"
	fwktype "k8s.io/kube-scheduler/framework"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/coscheduling"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
	configv1 "github.com/koord-jobqueue/koord-jobqueue/apis/config/v1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota"
)

// The scheduler decodes the arguments of plugins strictly, but only those that its scheme knows. It converts them with
// another scheme, that it makes from the builders when it first needs it.
func init() {
	utilruntime.Must(config.AddToScheme(scheme.Scheme))
	utilruntime.Must(configv1.AddToScheme(scheme.Scheme))
	kubeschedulerconfig.SchemeBuilder.Register(config.AddToScheme)
	kubeschedulerconfigv1.SchemeBuilder.Register(configv1.AddToScheme)
}

// Wiring connects the plugins of one scheduler: JobQueue, ElasticQuota whose state it reads, and Coscheduling whose
// gangs it gates. The framework builds them in random order, so each finds the others here, later.
type Wiring struct {
	quotas     *quota.Registry
	extensions *extensions

	mu      sync.RWMutex
	enabled bool
	renewal time.Duration
	profile []kubeschedulerconfig.PluginConfig
	core    *core
}

// NewWiring returns a wiring in which ElasticQuota and Coscheduling are those of Koordinator, until a profile is
// enabled. It registers a hook in a global map of Koordinator: call it from main, once. Extensions that contradict each
// other or what is built in are an error.
func NewWiring(options ...Option) (*Wiring, error) {
	x, err := newExtensions(options)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	w := &Wiring{quotas: quota.NewRegistry(), extensions: x}
	w.quotas.RegisterHook()
	return w, nil
}

// Validate says what is wrong with the arguments, before a scheduler is built with them.
func (w *Wiring) Validate(args *config.JobQueueArgs) error {
	return w.extensions.validate(args, field.NewPath("pluginConfig").Key(Name).Child("args")).ToAggregate()
}

// Enable makes the profile the one whose ElasticQuota counts, and whose filters look for nodes with these arguments:
// the first that enables JobQueue. Call it before the scheduler is built, and not at all if no profile enables
// JobQueue.
func (w *Wiring) Enable(profile string, args []kubeschedulerconfig.PluginConfig) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enabled, w.profile = true, args
	w.quotas.Enable(profile)
}

// Elected says in which time a leader has to renew its lease. Call it before the scheduler is built, and not at all
// without leader election.
func (w *Wiring) Elected(renewal time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renewal = renewal
}

// Plugins returns the factories that take the place of Koordinator's, and our own.
func (w *Wiring) Plugins() map[string]frameworkruntime.PluginFactory {
	return map[string]frameworkruntime.PluginFactory{
		Name:              w.newPlugin,
		elasticquota.Name: w.quotas.Factory(),
		coscheduling.Name: w.newCoscheduling,
	}
}

func (w *Wiring) newCoscheduling(
	ctx context.Context, args runtime.Object, handle fwktype.Handle,
) (fwktype.Plugin, error) {
	w.mu.RLock()
	enabled := w.enabled
	w.mu.RUnlock()
	if !enabled {
		return coscheduling.New(ctx, args, handle)
	}
	return newCoscheduling(w.gate)(ctx, args, handle)
}

func (w *Wiring) gate() *Gate {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.core == nil {
		return nil
	}
	return w.core.gate
}

// newPlugin builds the engine with the first profile; the other profiles' pods are held by the same gate.
func (w *Wiring) newPlugin(ctx context.Context, obj runtime.Object, handle fwktype.Handle) (fwktype.Plugin, error) {
	args, err := argsFrom(obj)
	if err != nil {
		return nil, err
	}
	if err := w.Validate(args); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.core == nil {
		c, err := newCore(ctx, args, handle, w.quotas.Adapter(), w.extensions, w.renewal, w.profile)
		if err != nil {
			return nil, fmt.Errorf("plugin %s: %w", Name, err)
		}
		w.core = c
	}
	return &Plugin{core: w.core}, nil
}

// argsFrom accepts what the framework hands over: decoded and defaulted arguments, or nothing where none are
// configured.
func argsFrom(obj runtime.Object) (*config.JobQueueArgs, error) {
	args, ok := obj.(*config.JobQueueArgs)
	if obj == nil {
		args, ok = &config.JobQueueArgs{}, true
		if err := scheme.Scheme.Convert(&configv1.JobQueueArgs{}, args, nil); err != nil {
			return nil, err
		}
	}
	if !ok {
		return nil, fmt.Errorf("want args to be of type JobQueueArgs, got %T", obj)
	}
	return args, nil
}
