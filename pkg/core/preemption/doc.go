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

// Package preemption decides which pending units preempt, and when each looks for victims.
//
// Package reclaim says which victims a unit has the right to. The object of the preemptor is written first. Its victims
// then lose their quota. Until the preemptor is admitted, it claims the capacity that comes free.
package preemption
