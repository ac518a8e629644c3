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

// Package decide finds out which heads fit, in the order in which they are served.
//
// A Pass is one look at all heads. It reads capacity through a View of its own, and writes claims into that View alone.
// It knows amounts and limits: not the units, their phases, or their lines. The caller serves the heads in order, and
// gives each a name of type T, by which heads and claims are known to it.
package decide
