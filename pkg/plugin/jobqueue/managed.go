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
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

// configCheckPeriod is how often is looked whether the configuration changed. settlePeriod is how often is looked
// whether the informers of a new one know all jobs.
const (
	configCheckPeriod = 10 * time.Second
	settlePeriod      = 100 * time.Millisecond
)

// managed is one configuration of managed jobs, and what follows those jobs.
type managed struct {
	predicate *managedjobs.Predicate
	factory   metadatainformer.SharedInformerFactory
	index     *JobIndex
	following *intake.Following
	stop      context.CancelFunc
}

func (c *core) newManaged(p *managedjobs.Predicate) (*managed, error) {
	m := &managed{predicate: p, factory: metadatainformer.NewSharedInformerFactory(c.metadata, 0)}
	var err error
	m.index, err = NewJobIndex(m.factory, p, c.stragglers.arrived)
	return m, err
}

func (m *managed) start(ctx context.Context) {
	ctx, m.stop = context.WithCancel(ctx)
	m.factory.Start(ctx.Done())
}

// managedJobs reads which jobs are managed. Without the ConfigMap the defaults apply. A malformed one is an error: a
// guess would gate pods that nobody releases, or pass pods that should wait.
func (c *core) managedJobs(ctx context.Context) (managedjobs.Jobs, error) {
	configMap, err := c.configMap(ctx)
	if err != nil || configMap == nil {
		return managedjobs.Default(), err
	}
	managed, err := managedjobs.From(configMap.Data)
	if err != nil {
		return managedjobs.Jobs{}, fmt.Errorf("ConfigMap %s/%s: %w", configMap.Namespace, configMap.Name, err)
	}
	return managed, nil
}

// configMap returns nil if it does not exist.
func (c *core) configMap(ctx context.Context) (*corev1.ConfigMap, error) {
	name := c.args.ManagedJobsConfigMap
	configMap, err := c.handle.ClientSet().CoreV1().ConfigMaps(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", name.Namespace, name.Name, err)
	}
	return configMap, nil
}

// followConfiguration applies the configuration of managed jobs when the ConfigMap changes, and reports when the
// controller uses another one than this process. A ConfigMap that is gone or cannot be read has no effect.
func (c *core) followConfiguration(ctx context.Context) {
	logger := klog.FromContext(ctx)
	ticker := c.clock.NewTicker(configCheckPeriod)
	defer ticker.Stop()
	told := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		configMap, err := c.configMap(ctx)
		if err != nil {
			logger.V(2).Info("Could not look whether other jobs are managed now", "err", err)
			continue
		}
		if err := c.takeConfiguration(ctx, configMap); err != nil && err.Error() != told {
			logger.Error(err, "The configuration of managed jobs does not take effect; the one in force stays")
			told = err.Error()
		}
		c.compareConfiguration(logger, configMap)
	}
}

func (c *core) takeConfiguration(ctx context.Context, configMap *corev1.ConfigMap) error {
	wanted := managedjobs.Default()
	if configMap != nil {
		var err error
		if wanted, err = managedjobs.From(configMap.Data); err != nil {
			return err
		}
	}
	if wanted.Hash() == c.managed.Load().predicate.Hash() {
		return nil
	}
	if configMap == nil { // somebody deleted the namespace of queues: with the defaults other jobs would be managed
		return errors.New("the ConfigMap of managed jobs is gone")
	}
	predicate, err := managedjobs.NewPredicate(wanted)
	if err != nil {
		return err
	}
	return c.manage(ctx, predicate)
}

// manage has another configuration hold. Its jobs are known before it does, so that no pod is taken for one of a job
// that nobody manages.
func (c *core) manage(ctx context.Context, p *managedjobs.Predicate) error {
	next, err := c.newManaged(p)
	if err != nil {
		return err
	}
	if next.following, err = c.engine.Follow(next.factory, p); err != nil {
		return err
	}
	next.start(ctx)
	for ticker := c.clock.NewTicker(settlePeriod); !next.following.Settled(); {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return ctx.Err()
		case <-ticker.C():
		}
	}
	done := make(chan struct{})
	c.engine.Manage(next.following, func() { close(done) })
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
	}
	c.managed.Swap(next).stop()
	return c.lookAgain()
}

// followModes has the gate asked about all pods again when jobs of a namespace are observed that were not.
func (c *core) followModes() error {
	observes := func(namespace any) bool {
		n, known := namespace.(*corev1.Namespace)
		return known && managedjobs.Observes(c.managed.Load().predicate, n.Labels)
	}
	_, err := c.handle.SharedInformerFactory().Core().V1().Namespaces().Informer().AddEventHandler(
		cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
			if observes(after) && !observes(before) {
				if err := c.lookAgain(); err != nil {
					klog.Background().Error(err, "Pods of a namespace that is observed now could not be listed")
				}
			}
		}})
	return err
}

// lookAgain has the gate asked about every pod that is on no node: another configuration may have another answer.
func (c *core) lookAgain() error {
	pods, err := c.handle.SharedInformerFactory().Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil {
		return err
	}
	var unbound []*corev1.Pod
	for _, pod := range pods {
		if pod.Spec.NodeName == "" {
			unbound = append(unbound, pod)
		}
	}
	c.tryAgain(unbound)
	return nil
}

// compareConfiguration says when the controller works with other managed jobs than this process. For a moment after a
// change it may.
func (c *core) compareConfiguration(logger klog.Logger, configMap *corev1.ConfigMap) {
	ours, theirs := c.managed.Load().predicate.Hash(), ""
	if configMap != nil {
		theirs = configMap.Annotations[managedjobs.AnnotationHash]
	}
	if theirs == "" {
		theirs = ours
	}
	if theirs != ours && theirs != c.theirs {
		logger.Info("The controller manages other jobs than this scheduler: its log says why", "ours", ours, "theirs", theirs)
	}
	c.theirs = theirs
	differs := 0.0
	if theirs != ours {
		differs = 1
	}
	c.metrics.Set(metrics.ConfigDiffers, differs)
}
