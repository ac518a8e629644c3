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

// Package served says which kinds an API server serves, and waits for definitions that are installed or removed.
//
// One Index serves the whole process. Every few seconds it reads the index of OpenAPI v3 documents, a small answer that
// has a hash for each group and version. It reads a document only if its hash has changed.
package served
