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

// Package jobs reads and edits jobs of any kind.
//
// A Kind of package jobkind knows where its jobs have suspension, pod sets, priority and end. A Job is an object that
// was opened with its kind, and an Edit changes one. So other code must not know any kind by name.
package jobs
