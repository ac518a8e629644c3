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

// Package jobqueue is the scheduler plugin JobQueue. It has the extension points, and connects the engine to
// koord-scheduler. The engine decides about units, and the gate of this package holds back the pods of all jobs that
// are not admitted.
//
// The gate has four parts. PreEnqueue keeps a pod out of the scheduling queue. Koordinator's Coscheduling takes the
// siblings of a gang past PreEnqueue, so its NextPod skips those that are not admitted (see Coscheduling in this
// package). PreFilter and Reserve refuse pods that lost their admission in the scheduling queue.
package jobqueue
