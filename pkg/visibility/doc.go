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

// Package visibility answers what waits where and why: the aggregated API visibility.koord-queue.x-k8s.io.
//
// A question is answered from the state that decides, in its goroutine, so a position is the one that the next decision
// goes by. That goroutine only copies, and at most one page; all else happens in the goroutine of the request. How many
// questions are asked at a time, and in a second, is bounded.
//
// Who may ask what, RBAC says. There are two kinds of resources, so that no answer needs a review for each unit: those
// of the cluster say everything, those of a namespace name no unit of another one.
package visibility
