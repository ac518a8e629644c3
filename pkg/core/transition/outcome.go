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

package transition

// Outcome of a status write.
type Outcome int

const (
	// Confirmed: the object holds what was written.
	Confirmed Outcome = iota
	// Refuted: it was not and will never be applied (conflict and read back, gone).
	Refuted
	// Refused: the API server refuses it for good (invalid, forbidden); parked for RefusedBackoff.
	Refused
	// Unknown: it may have been or may yet be applied; the reservation stays and a further
	// outcome follows. Unknown outcomes are a state, not an error.
	Unknown
)
