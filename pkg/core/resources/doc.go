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

// Package resources holds resource vectors: the arithmetic that the whole of pkg/core counts in.
//
// Amounts are int64: milli-units for cpu, units for everything else, as Koordinator compares them.
// All arithmetic saturates at the ends of int64 instead of wrapping.
package resources
