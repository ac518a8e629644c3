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

// Package life has the rules about one unit: whether it may be in line, whether its pods may start, and when it loses
// its admission.
//
// Look here for back-off, time-outs, admission checks and deactivation. Each rule is a pure function of Facts and has
// its reason and its sentence next to it. ClassifyWaiting and ClassifyAdmitted join the rules. Rules must not look at
// lines, other units, or free amounts.
package life
