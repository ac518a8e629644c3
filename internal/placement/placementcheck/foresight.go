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

package placementcheck

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/witness"
)

// Foresee answers a question later, on the goroutine of Run, and keeps no nodes for it. A second question about the
// same unit replaces the first one if that is still unanswered. Questions after the end of Run are never answered.
func (c *Checker) Foresee(q witness.Question) {
	namespace, name, _ := strings.Cut(q.Key, "/")
	next := item{namespace: namespace, name: name, foreseen: true}
	c.shared.Lock()
	c.foreseen[next] = q
	c.shared.Unlock()
	c.queue.Add(next)
}

// foresee answers what is asked about a unit.
func (c *Checker) foresee(ctx context.Context, next item) {
	c.shared.Lock()
	q, ok := c.foreseen[next]
	delete(c.foreseen, next)
	c.shared.Unlock()
	if !ok {
		return
	}
	why, err := c.missing(ctx, next, &q)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot foresee nodes for a unit", "unit", klog.KRef(next.namespace, next.name))
		why = err.Error()
	}
	q.Answer(why == "", why)
}

func (c *Checker) missing(ctx context.Context, next item, q *witness.Question) (why string, err error) {
	qu := &v1alpha1.QueueUnit{}
	key := types.NamespacedName{Namespace: next.namespace, Name: next.name}
	if err := client.IgnoreNotFound(c.objects.Get(ctx, key, qu)); err != nil {
		return "", err
	}
	if qu.UID != q.UID { // none was read if there is none
		return "the unit is gone", nil
	}
	_, why, err = c.search(ctx, qu, q.Gone)
	return why, err
}
