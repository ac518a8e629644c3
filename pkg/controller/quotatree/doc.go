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

// Package quotatree makes ElasticQuotas of ElasticQuotaTrees and keeps them in step.
//
// Expand says what a tree asks for, and plan what must be done about it; both are functions of their arguments alone.
// The reconciler gathers, asks them and does it. It touches no ElasticQuota that a person made, and no problem of one
// node holds up another that does not lie below it.
package quotatree
