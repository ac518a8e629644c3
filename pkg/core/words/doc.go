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

// Package words makes sentences of findings, for conditions, events and answers of kubectl. A sentence is a pure
// function of a finding and its reader.
//
// Told and its variants have words that stay true while numbers change: such a sentence is written to objects.
// Shortages and the other functions have the numbers of this moment: such a sentence answers a question.
package words

// Reader is the unit that a sentence is for. No sentence names a unit of another namespace than that of its reader.
type Reader struct {
	Namespace, Queue, Quota string
	// Least: the unit asks for its least size, and would take more. Holds: it holds quota already and asks for more.
	Least, Holds bool
	// Observed: nobody acts on what is told.
	Observed bool
}
