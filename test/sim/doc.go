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

// Package sim simulates a cluster around the real engine, core, ledger, quota adapter, gate and reconcilers. The
// simulated parts are an API with resource versions, delayed watches, users, a job controller, kubelets, administrators
// and a lease. Time is virtual, everything runs in one goroutine, and every choice comes from one seed. So a run can be
// repeated byte by byte (I13).
//
// A Plan is data: a world, and a list of actions and faults with their times. Generate makes a Plan from a seed. Run
// runs it, and checks the invariants from the API objects alone after every write. Shrink reduces a Plan that fails to
// a minimal one.
package sim
