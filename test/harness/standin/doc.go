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

// Package standin plays the operators of kinds that tests cannot have: mpi-operator (v2beta1), spark-operator, Argo
// Workflows and LeaderWorkerSet. It creates the same children with the same owners, labels and order, writes the same
// states, and reacts alike to suspension.
//
// It is written from public facts about the operators, and must not be written from this project's descriptions of
// their kinds. So a test in which both disagree has found something. Each file names the source of its facts.
// "Doubtful" marks a fact that was not read in the source of an operator.
//
// Nothing runs in the pods of such a job: the phases of pods stand for it. A pod that succeeds has done its work.
package standin
