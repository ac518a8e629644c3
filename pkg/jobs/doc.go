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

// Package jobs knows kinds of jobs as data, and what it means for a job to be managed by the queue.
//
// A Kind says where a kind keeps what the queue needs: suspension, pod sets, priority, end. One generic
// adapter reads and edits objects of any kind through it, so that nothing else knows a kind by name.
// Whether a job is managed is decided by one type, Predicate, in the scheduler and in the controller alike.
// What a job asks for is what its pods will ask for: Creation follows a pod template through all that a cluster does to
// a pod before ElasticQuota counts it.
package jobs
