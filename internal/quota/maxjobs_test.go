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
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koordinator-sh/koordinator/apis/extension"
	eqv1alpha1 "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

func maxJobs(n string) quotaOption {
	return func(q *eqv1alpha1.ElasticQuota) { q.Annotations = map[string]string{v1alpha1.AnnotationMaxJobs: n} }
}

func maxJobsInSpec(n string) quotaOption {
	return func(q *eqv1alpha1.ElasticQuota) {
		q.Spec.Max[resources.Jobs], q.Spec.Min[resources.Jobs] = resource.MustParse(n), resource.MustParse("1")
	}
}

// jobsOf is the number of jobs that each level admits.
func jobsOf(t *testing.T, found []admission.Quota) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, q := range found {
		if n, ok := q.Limit.Get(resources.Jobs); ok {
			out[q.Name] = n
		}
		for _, other := range []resources.List{q.Max, q.Min} {
			_, named := other.Get(resources.Jobs)
			require.False(t, named, "%s: only the limit says it", q.Name)
		}
	}
	return out
}

func TestMaxJobs(t *testing.T) {
	for name, runtime := range map[string]bool{"max is the limit": false, "runtime is the limit": true} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, runtime, "100",
				elasticQuota("dept", "40", "100", isParent, maxJobs("10")),
				elasticQuota("a", "10", "100", under("dept"), maxJobs("3")),
				elasticQuota("b", "10", "100", under("dept"), maxJobsInSpec("2")),
				elasticQuota("both", "10", "100", under("dept"), maxJobsInSpec("5"), maxJobs("4")),
				elasticQuota("none", "10", "100", under("dept"), maxJobs("several")),
			)
			found, gone := l.adapter.Observe([]string{"a", "b", "both", "none"})
			require.Empty(t, gone)
			require.Equal(t, map[string]int64{"dept": 10, "a": 3, "b": 2, "both": 4}, jobsOf(t, found))
		})
	}
}

func TestMaxJobsIsFollowed(t *testing.T) {
	l := newLive(t, false, "100", elasticQuota("a", "10", "100"))
	sink := &recordingSink{}
	l.adapter.Subscribe(sink)
	observed := func() map[string]int64 {
		found, _ := l.adapter.Observe([]string{"a"})
		return jobsOf(t, found)
	}
	require.Empty(t, observed())
	for _, n := range []string{"3", "0"} {
		l.set(elasticQuota("a", "10", "100", maxJobs(n)))
		require.Contains(t, sink.drain(), "a", "nothing but the annotation changed")
		require.Len(t, observed(), 1)
	}
	l.remove("a")
	l.set(elasticQuota("a", "10", "100"))
	require.Empty(t, observed(), "the new quota of the name has no such annotation")
	l.adapter.onQuota(nil, elasticQuota(extension.RootQuotaName, "0", "0", maxJobs("7")))
	require.Equal(t, map[string]int64{extension.RootQuotaName: 7}, observed(), "the whole cluster can be limited")
}
