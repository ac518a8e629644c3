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
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// The Deployments of the controller, of the scheduler that the installation brings, and of Koordinator's scheduler.
const (
	controllerDeployment = "jobqueue-controller"
	schedulerDeployment  = "koord-jobqueue-scheduler"
	stockDeployment      = "koord-scheduler"
)

// Deployment is what is read of one.
type Deployment struct {
	Image    string
	Replicas int64
}

// deployments reads those of both namespaces by name.
func (r *reader) deployments() {
	for name, namespace := range map[string]string{
		controllerDeployment: r.into.QueueNamespace,
		schedulerDeployment:  r.into.SchedulerNamespace, stockDeployment: r.into.SchedulerNamespace,
	} {
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
		if !r.get("deployment "+namespace+"/"+name, types.NamespacedName{Namespace: namespace, Name: name}, found) {
			continue
		}
		d := &Deployment{Replicas: 1}
		if n, named, err := unstructured.NestedInt64(found.Object, "spec", "replicas"); err == nil && named {
			d.Replicas = n
		}
		containers, _, _ := unstructured.NestedSlice(found.Object, "spec", "template", "spec", "containers")
		if len(containers) > 0 {
			if fields, ok := containers[0].(map[string]any); ok {
				d.Image, _ = fields["image"].(string)
			}
		}
		r.into.Deployments[name] = d
	}
}

// schedulers: Koordinator's scheduler takes the same lease. While it leads, nothing holds the pods of jobs that wait.
func schedulers(i *Installation) []Finding {
	stock := i.Deployments[stockDeployment]
	if i.Deployments[schedulerDeployment] == nil || stock == nil || stock.Replicas == 0 {
		return nil
	}
	return []Finding{{Error, "StockSchedulerRuns", fmt.Sprintf("Deployment %s/%s has %d replicas next to %s. "+
		"While one of them leads, it schedules pods of jobs that wait.", i.SchedulerNamespace, stockDeployment,
		stock.Replicas, schedulerDeployment), "Set scheduler.replicas=0 in the values of Koordinator's chart."}}
}

func versions(i *Installation) []Finding {
	scheduler := i.Deployments[schedulerDeployment]
	if scheduler == nil {
		scheduler = i.Deployments[stockDeployment] // with an image of ours
	}
	tags, images := sets.New[string](), []string(nil)
	for _, d := range []*Deployment{i.Deployments[controllerDeployment], scheduler} {
		if d == nil {
			continue
		}
		images = append(images, d.Image)
		name := d.Image[strings.LastIndex(d.Image, "/")+1:]
		if _, tag, tagged := strings.Cut(name, ":"); tagged && !strings.Contains(name, "@") {
			tags.Insert(tag)
		}
	}
	if len(tags) < 2 {
		return nil
	}
	return []Finding{{Warning, "VersionsDiffer", "The images of scheduler and controller differ in their tags: " +
		strings.Join(images, " and ") + ".", "Run both from one release."}}
}
