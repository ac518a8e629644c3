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

// Package quota is the only package that may import the code of Koordinator's ElasticQuota.
//
// A Registry captures the ElasticQuota plugin of the profile that enables JobQueue, and puts a hook into it. An Adapter
// answers the engine from that plugin: the quota of a job, and settings, use and demand of each level. If ElasticQuota
// limits by runtime, the core computes the limit from these answers.
//
// Nothing may write into the live GroupQuotaManager.
package quota
