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

package objects

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
)

// Check is what is kept of an AdmissionCheck; immutable.
type Check struct {
	Meta
	Controller string
	Active     bool
	// Why it is not active, in the words of its controller.
	Why string
	// Keys that its controller may write into pods.
	Keys podupdate.Keys
}

// DecodeCheck never fails: a check that cannot be read is not active.
func DecodeCheck(w *WireCheck) *Check {
	c := &Check{Meta: metaOf(&w.Metadata), Keys: podupdate.ParseKeys(w.Metadata.Annotations)}
	var spec struct {
		ControllerName string `json:"controllerName"`
	}
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	if Read(w.Spec, &spec) != nil || Read(w.Status, &status) != nil {
		c.Why = "it cannot be read"
		return c
	}
	c.Controller = Shorten(spec.ControllerName)
	active := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionActive)
	switch {
	case active == nil:
		c.Why = fmt.Sprintf("its controller %q has not said that it answers it", c.Controller)
	case active.Status != metav1.ConditionTrue:
		c.Why = Shorten(active.Message)
	default:
		c.Active = true
	}
	return c
}
