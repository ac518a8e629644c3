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

// Package standin plays the operators of job kinds that cannot be had for tests: mpi-operator (v2beta1),
// spark-operator, Argo Workflows and LeaderWorkerSet. It makes the children that they make, with the same owners,
// labels and order, writes the states that they write, and does on suspension what they do.
//
// It is written from what is public about the operators, never from how this project describes their kinds, so that the
// two can disagree: a test in which they do has found something. Each file says where its facts are from. "Doubtful"
// marks what was not read in the source of an operator.
//
// What runs in the pods of such a job is nobody here: the phases of pods stand for it. A pod that succeeds has done its
// work.
package standin
