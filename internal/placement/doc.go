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

// Package placement answers whether all pods of a job find nodes at once, before the job is released.
//
// # Method
//
// The placer keeps a snapshot of its own, which the cache of kube-scheduler brings up to date. A framework of its own
// runs the in-tree filter plugins on a view of the snapshot. The view replaces a node by a copy at the first change,
// and forgets all copies at the end of a question. So the snapshot never changes, and no undo can be wrong.
//
// A question has pod sets, each a model of a pod and a count. For most models one run of the filters per node is
// enough. Arithmetic does the rest: the slots of a node are the least quotient of free and requested amounts. The pod
// number of the node, host ports and anti-affinity of the model to itself bound the slots as well. Models with pod
// affinity, topology spread, claims or shared volumes are placed pod by pod: the filters see each pod placed before.
// The set that takes the greatest part of its slots is placed first, on the nodes with the fewest slots.
//
// A yes is a placement that the filters accept pod by pod in the order of the answer. A no is that of a greedy search:
// a placement in another order may exist. The reasons of a no are those of the filters for the next pod. So they read
// as in an event of kube-scheduler.
//
// The method is that of the cluster autoscaler and of sigs.k8s.io/scheduler-library: the scheduling framework, run on a
// snapshot. The arithmetic for equal pods is added here.
//
// # Answered yes
//
// Some things cannot be known outside of a scheduling cycle. They never cause a no:
//
//   - Reservations, devices and NUMA of Koordinator. An extended resource counts by the amount that a node lists.
//   - Network topology of Koordinator.
//   - Claims of resources and volumes that are made for each pod. They do not exist before the pod.
//   - A claim of resources without an allocation, or an unbound volume, after the first pod has decided its node.
//   - All claims of resources, if the caller has no manager of them.
//   - Pods that wait on a node for preemption (nominated pods).
//   - Extenders of the scheduler, and quotas.
package placement
