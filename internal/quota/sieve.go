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

package quota

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwktype "k8s.io/kube-scheduler/framework"

	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/generated/clientset/versioned"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext"

	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/ancestry"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/intake"
)

// sieve has one ElasticQuota read its quotas by way of an intake, and says which quotas that withholds.
type sieve struct {
	// handle is the one for ElasticQuota.
	handle   fwktype.Handle
	recorder func() events.EventRecorder
	// metrics is nil in a profile that is not captured.
	metrics *metrics.Set

	mu       sync.Mutex
	withheld map[types.NamespacedName]ancestry.Reason
	leads    bool
}

// newSieve takes the handle of a profile. ElasticQuota takes its client from the handle, if the handle is one, and
// makes one from the same configuration otherwise.
func newSieve(handle fwktype.Handle) *sieve {
	s := &sieve{recorder: func() events.EventRecorder { return handle.EventRecorder() }}
	client, ok := handle.(versioned.Interface)
	if !ok {
		config := *handle.KubeConfig()
		config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
		client = versioned.NewForConfigOrDie(&config)
	}
	client = intake.NewClient(client, s.told)
	if extended, ok := handle.(frameworkext.ExtendedHandle); ok {
		s.handle = extendedSource{extended, client}
	} else {
		s.handle = source{handle, client}
	}
	return s
}

type source struct {
	fwktype.Handle
	versioned.Interface
}

type extendedSource struct {
	frameworkext.ExtendedHandle
	versioned.Interface
}

// Name of the controller.
func (s *sieve) Name() string { return "WithheldQuotas" }

// Start is called when this replica leads. The others withhold the same quotas and are silent.
func (s *sieve) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = true
	s.report(s.withheld)
}

// told takes all quotas that are withheld now.
func (s *sieve) told(withheld map[types.NamespacedName]ancestry.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, reason := range ancestry.Reasons {
		count := 0
		for _, why := range withheld {
			if why == reason {
				count++
			}
		}
		s.metrics.Set(metrics.WithheldQuotas, float64(count), string(reason))
	}
	news := maps.Clone(withheld)
	maps.DeleteFunc(news, func(at types.NamespacedName, why ancestry.Reason) bool { return s.withheld[at] == why })
	s.withheld = withheld
	s.report(news)
}

var withheldFor = map[ancestry.Reason]string{
	ancestry.OwnAncestor: "The quota is its own ancestor and has no effect until the label " +
		"quota.scheduling.koordinator.sh/" +
		"parent of one quota on the way is corrected",
	ancestry.BelowOwnAncestor: "An ancestor of the quota is its own ancestor. " +
		"The quota has no effect until that is corrected",
	ancestry.NameTaken: "An older ElasticQuota in another namespace has this name. " +
		"The quota has no effect while that exists: " +
		"names of quotas are unique in the cluster",
}

func (s *sieve) report(withheld map[types.NamespacedName]ancestry.Reason) {
	for _, at := range slices.SortedFunc(maps.Keys(withheld), func(a, b types.NamespacedName) int {
		return cmp.Compare(a.String(), b.String())
	}) {
		reason := withheld[at]
		klog.Background().Info("ElasticQuota is withheld from the scheduler", "quota", at, "reason", reason)
		if !s.leads {
			continue
		}
		quota := &corev1.ObjectReference{
			APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ElasticQuota", Namespace: at.Namespace, Name: at.Name,
		}
		s.recorder().Eventf(quota, nil, corev1.EventTypeWarning, string(reason), "Withhold", "%s", withheldFor[reason])
	}
}
