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

package controller

import (
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	queuev1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// namespaceChanged: its labels, or the greatest priority that its jobs may have.
var namespaceChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	const most = queuev1alpha1.AnnotationMaxPriority
	return predicate.LabelChangedPredicate{}.Update(e) ||
		e.ObjectOld.GetAnnotations()[most] != e.ObjectNew.GetAnnotations()[most]
}}
