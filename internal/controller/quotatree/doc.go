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

// Package quotatree keeps ElasticQuotas in step with ElasticQuotaTrees.
//
// Expand computes the quotas that a tree asks for, and plan compares them with the existing ones. Both are pure
// functions. The reconciler gathers their input and carries out the plan. It must not change an ElasticQuota that a
// person made. A problem of one node delays only the nodes below it.
package quotatree
