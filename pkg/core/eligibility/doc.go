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

// Package eligibility has the rules about one group: reasons that keep all of its units out, however much is free.
//
// Look here for an unknown quota, a request above max, or a check of an extension. Each rule is a pure function of
// Facts and has its reason and its sentence next to it. Rules must not look at single units or at used amounts.
package eligibility
