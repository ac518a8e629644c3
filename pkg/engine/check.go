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

package engine

import (
	"fmt"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/podupdate"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkObject is what is kept of an AdmissionCheck; immutable.
type checkObject struct {
	objectMeta
	controller string
	active     bool
	// why it is not active, in the words of its controller.
	why string
	// keys that its controller may write into pods.
	keys podupdate.Keys
}

// decodeCheck never fails: a check that cannot be read is not active.
func decodeCheck(w *wireCheck) *checkObject {
	c := &checkObject{objectMeta: metaOf(&w.Metadata), keys: podupdate.ParseKeys(w.Metadata.Annotations)}
	var spec struct {
		ControllerName string `json:"controllerName"`
	}
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if read(w.Spec, &spec) != nil || read(w.Status, &status) != nil {
		c.why = "it cannot be read"
		return c
	}
	c.controller = shorten(spec.ControllerName)
	active := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionActive)
	switch {
	case active == nil:
		c.why = fmt.Sprintf("its controller %q has not said that it answers it", c.controller)
	case active.Status != metav1.ConditionTrue:
		c.why = shorten(active.Message)
	default:
		c.active = true
	}
	return c
}
