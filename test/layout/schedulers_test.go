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

package layout_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

var (
	yamlBlock    = regexp.MustCompile("(?ms)^ *```ya?ml\n(.*?)^ *```")
	yamlDocument = regexp.MustCompile(`(?m)^---.*$`)
)

// A job that somebody copies from README, docs or examples must name koord-scheduler in all of its pod templates, or it
// is parked.
func TestJobsOfTheDocumentationNameTheScheduler(t *testing.T) {
	checked := 0
	read := func(file string) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		texts := []string{string(content)}
		if filepath.Ext(file) == ".md" {
			texts = nil
			for _, block := range yamlBlock.FindAllStringSubmatch(string(content), -1) {
				texts = append(texts, block[1])
			}
		}
		for _, text := range texts {
			for _, document := range yamlDocument.Split(text, -1) {
				object := map[string]any{}
				if yaml.Unmarshal([]byte(document), &object) != nil {
					continue // a template, or a part of an object
				}
				for at, name := range schedulersOf(object) {
					checked++
					require.Equal(t, "koord-scheduler", name, "%s: %s of %s %s", file, at, object["kind"], document)
				}
			}
		}
	}
	read(filepath.Join(root, "README.md"))
	for _, dir := range []string{"docs", "examples"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, dir), func(file string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(file, ".md") || strings.HasSuffix(file, ".yaml") {
				read(file)
			}
			return err
		}))
	}
	require.GreaterOrEqual(t, checked, 4, "the jobs of the documentation are no longer found")
}

// schedulersOf an object: by the kind of the job where that is known, else wherever containers are.
func schedulersOf(object map[string]any) map[string]string {
	found := map[string]string{}
	u := &unstructured.Unstructured{Object: object}
	kind, known := jobkind.Find(jobkind.KindString(u.GroupVersionKind()))
	if !known {
		specsIn(object, "", found)
		return found
	}
	sets, _ := jobs.Open(kind, u).PodSets() // a fragment has those that it has
	for i := range sets {
		if sets[i].SchedulerField != "" {
			found[sets[i].SchedulerField] = sets[i].Template.Spec.SchedulerName
		}
	}
	return found
}

func specsIn(value any, at string, found map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		if _, isSpec := v["containers"].([]any); isSpec {
			found[at+".schedulerName"], _ = v["schedulerName"].(string)
		}
		for key, below := range v {
			specsIn(below, at+"."+key, found)
		}
	case []any:
		for _, below := range v {
			specsIn(below, at+"[]", found)
		}
	}
}
