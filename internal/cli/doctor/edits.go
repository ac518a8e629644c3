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

package doctor

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// annotationRelease is written by Helm to all objects of a release.
const annotationRelease = "meta.helm.sh/release-name"

// helm begins the name of the manager of the fields that Helm has written. That of Flux is helm-controller.
const helm = "helm"

// edits finds keys of ConfigMaps of the chart that somebody has written after Helm. The next upgrade of the release
// writes the values of the chart again.
func edits(i *Installation) (f []Finding) {
	f = append(f, editsOf(i.ManagedJobs, "kinds and managedJobs", managedjobs.Key)...)
	f = append(f, editsOf(i.Tenancy, "tenancy.parameters", "authors", "schedulers", "terminationGracePeriodSeconds")...)
	for _, c := range configurations {
		f = append(f, editsOf(i.Settings[c.name], c.value, c.key)...)
	}
	return f
}

// configurations of processes are ConfigMaps, each with the values of the chart for its key.
var configurations = []struct{ name, key, value string }{
	{"koord-jobqueue-controller", "controller.yaml", "controller.config"},
	{"koord-jobqueue-scheduler", "scheduler-config.yaml", "scheduler.args or scheduler.config"},
}

// settings reads those ConfigMaps: the first is that of the controller.
func (r *reader) settings() {
	for n, namespace := range []string{r.into.QueueNamespace, r.into.SchedulerNamespace} {
		key := types.NamespacedName{Namespace: namespace, Name: configurations[n].name}
		if configMap := (&corev1.ConfigMap{}); r.get("ConfigMap "+key.String(), key, configMap) {
			r.into.Settings[key.Name] = configMap
		}
	}
}

func editsOf(configMap *corev1.ConfigMap, value string, keys ...string) (f []Finding) {
	if configMap == nil || configMap.Annotations[annotationRelease] == "" {
		return nil
	}
	for _, key := range keys {
		if by := writerAfterHelm(configMap, key); by != "" {
			f = append(f, Finding{Warning, "ChartObjectEdited", fmt.Sprintf("Key %s of ConfigMap %s/%s was written by %s. "+
				"The next helm upgrade of release %s undoes that.", key, configMap.Namespace, configMap.Name, by,
				configMap.Annotations[annotationRelease]), "Set the same in the values " + value + " of the chart."})
		}
	}
	return f
}

// writerAfterHelm is who has written the key of the ConfigMap as it is, empty if Helm has.
func writerAfterHelm(configMap *corev1.ConfigMap, key string) string {
	writer := ""
	for _, entry := range configMap.ManagedFields {
		var fields struct {
			Data map[string]json.RawMessage `json:"f:data"`
		}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.Raw, &fields) != nil || fields.Data["f:"+key] == nil {
			continue
		}
		if strings.HasPrefix(entry.Manager, helm) {
			return "" // by server-side apply, several managers may have written one value
		}
		writer = entry.Manager
	}
	return writer
}
