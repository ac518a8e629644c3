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

package migrate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// TestLargeInputs: the largest inputs are answered, with what was left out.
func TestLargeInputs(t *testing.T) {
	numbered := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	// Each has the number of its ClusterQueue in the place of N.
	clusterQueues := func(n int, flavor, resource string) string {
		text := `---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: qN}
spec:
  cohort: all
  resourceGroups: [{flavors: [{name: FLAVOR, resources: [{name: RESOURCE, nominalQuota: 1, lendingLimit: 0}]}]}]
`
		text = strings.NewReplacer("FLAVOR", flavor, "RESOURCE", resource).Replace(text)
		return numbered(n, strings.ReplaceAll(text, "N", "%[1]d"))
	}
	for name, tc := range map[string]struct {
		source, input string
		quotas        int
		found         finding.Reason
	}{
		"ClusterQueues of one cohort": {"kueue", clusterQueues(1000, "f", "cpu"), 1001, ""},
		"a flavor for each":           {"kueue", clusterQueues(500, "fN", "cpu"), 2 * 256, finding.TooLarge},
		"a resource for each":         {"kueue", clusterQueues(257, "f", "rN"), 0, finding.TooLarge},
		"queues of YuniKorn": {"yunikorn", "partitions:\n- queues:\n" + numbered(document.MaxObjects+1,
			"  - {name: q%d}\n"), document.MaxObjects, finding.TooLarge},
		"users of YuniKorn": {"yunikorn", "partitions:\n- queues:\n  - name: root\n    submitacl: '" +
			numbered(501, "u%d,") + "'\n    queues:\n" + numbered(201, "    - {name: q%d}\n"), 201, finding.RightsNotGranted},
		"resources of Volcano": {"volcano", "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\n" +
			"spec:\n  capability:\n" + numbered(257, "    r%d: 1\n"), 0, finding.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			for _, source := range migrate.Sources {
				if source.Name != tc.source {
					continue
				}
				objects, findings := convert(source, []byte(tc.input))
				quotas := 0
				for _, object := range objects {
					if object.GetKind() == "ElasticQuota" {
						quotas++
					}
				}
				require.Equal(t, tc.quotas, quotas)
				checkQuotas(t, objects)
				if tc.found != "" {
					require.Equal(t, finding.Error, findings[0].Severity)
					require.Equal(t, tc.found, findings[0].Reason)
				}
			}
		})
	}
}
