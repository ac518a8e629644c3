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

// Package shares computes the runtime of every quota from its settings and the demand of its siblings.
//
// The calculation repeats that of Koordinator v1.8.0 (RuntimeQuotaCalculator and ScaleMinQuotaManager) number for
// number. Koordinator's own code is not called, for two reasons:
//
//   - One change can move the runtimes of all siblings. Koordinator computes all n siblings for each question about
//     one, which is n times n for all of them. A Tree makes one pass over the siblings of each level that changes.
//   - Koordinator scales the min of a quota when that quota is refreshed, and shares out by old values until then. So
//     its answer depends on earlier questions. A Tree answers as if all quotas had been refreshed.
package shares
