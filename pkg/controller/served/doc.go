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

// Package served says what an API server serves, and waits for definitions that come and go.
//
// One Index serves the whole process. It reads the index of OpenAPI v3 documents every few seconds: one small request,
// which tells every group and version with a hash of its schemas. A document is read only if its hash changed.
package served
