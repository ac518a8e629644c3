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

// Package shares computes the runtime of every quota: what it gets of what its parent gets. It repeats the calculation
// of Koordinator v1.8.0 (RuntimeQuotaCalculator and ScaleMinQuotaManager of ElasticQuota) number for number, for two
// reasons:
//
//   - One change may move the runtimes of all siblings, and somebody may wait in each. Koordinator tells the runtime of
//     one quota, and computes those of all its siblings for it each time: to know of n siblings what became of them
//     costs n times n. Here it costs one pass over the siblings on the levels that the change reaches.
//   - Koordinator scales the min of a quota when that quota is refreshed, and shares out with old ones until then: what
//     it says depends on who was asked before. Here it is as if all had been.
//
// A Tree is told what quotas are and what is asked of them. Amounts are those of the core: thousandths of cpu, units of
// everything else.
package shares
