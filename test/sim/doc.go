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

// Package sim runs the real engine, core, ledger, quota adapter, gate and reconcilers against a simulated cluster:
// an API with the semantics of resource versions, watches that lag, users, a job controller, kubelets, administrators
// and a lease, in virtual time. Everything runs in one goroutine and every choice comes from one seed, so a run is
// repeated byte by byte (I13).
//
// A Plan is data: a world and a list of what people and faults do to it, each at its time. Generate makes one from a
// seed, Run runs it and checks the invariants after every write from the API objects alone, Shrink cuts a plan that
// fails down to what is needed for that.
package sim
