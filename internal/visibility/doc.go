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

// Package visibility serves the aggregated API visibility.koord-queue.x-k8s.io: which units are pending, where and why.
//
// The engine's goroutine copies the answer from its own state, at most one page. So a position is the one that the next
// decision uses. All other work happens in the goroutine of the request. The number of questions at a time and per
// second is bounded.
//
// RBAC decides who may ask. Resources of the cluster answer everything, and resources of a namespace name no unit of
// another namespace. So no answer needs an access review for each unit.
package visibility
