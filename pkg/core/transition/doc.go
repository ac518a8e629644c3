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

// Package transition has the kinds of writes that the core makes to units. Each kind is one type in one file.
//
// The type says between which stages the write moves the unit, and how the object looks afterwards. It also says how an
// object shows that the write was applied, and how much the unit may hold while the outcome is unknown. The code that
// launches, settles or rebuilds a write asks the type and must not name a kind.
package transition
