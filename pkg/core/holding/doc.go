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

// Package holding keeps held quota of units, their pods, and the queues in which both count.
//
// A Book is the only writer of the ledger, and tells the tree of quotas which levels changed. A unit that holds quota
// counts in its queue and its namespace. Its pods on nodes keep that count after the unit gives its quota back.
package holding
