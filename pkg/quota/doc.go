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

// Package quota is the only package that knows the code of Koordinator's ElasticQuota.
//
// A Registry captures the ElasticQuota plugin instance of the profile that enables JobQueue, and puts a hook into it.
// An Adapter answers the engine's questions from that instance: which quota a job is charged to, and what each level
// of the quota tree is, uses, and is asked for. Where ElasticQuota limits by runtime, the core computes the limit from
// that.
//
// Nothing is ever written into the live GroupQuotaManager.
package quota
