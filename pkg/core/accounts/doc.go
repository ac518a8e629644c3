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

// Package accounts counts units by queue and quota, and sums what they ask of a quota beyond its pods.
//
// Each unit contributes something, and units of one group may share a pool, which counts as one thing or another. A
// change costs O(1), however many units there are. The sums are in the tree of quotas (package capacity).
package accounts
