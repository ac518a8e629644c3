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

// Package controlplane runs a real Kubernetes control plane on this machine, without containers. It has etcd,
// kube-apiserver, kube-controller-manager, and KWOK for nodes and pods. On top run koord-scheduler and
// jobqueue-controller, each as a child process with its own identity.
//
// A test of the API alone needs two processes and about three seconds:
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{Dir: t.TempDir()})
//	defer cp.Stop()
//	client, err := client.New(cp.RESTConfig(controlplane.Admin), client.Options{})
//
// An end-to-end test takes all of them:
//
//	cp, err := controlplane.Start(ctx, controlplane.Options{
//		Dir: t.TempDir(), Components: controlplane.Full(), Nodes: 10,
//	})
//	err = cp.Install(ctx)                                         // CRDs of Koordinator, manifests/overlays/fresh
//	err = cp.StartScheduler(ctx, controlplane.SchedulerOptions{}) // scheduler-config.yaml
//	err = cp.StartController(ctx, controlplane.ControllerOptions{})
//	err = cp.Kill(controlplane.Scheduler)                         // kill -9
//	err = cp.Restart(ctx, controlplane.Scheduler)                 // same port, same arguments
//
// StartInstalled runs the Deployments of Install instead, with all that the manifests say, as RunDeployments does with
// what somebody else has installed.
//
// The binaries must have been built before, see package controlplane/binaries; Start says which one is missing.
//
// Authorization is RBAC. The scheduler and the controller are the service accounts of the shipped manifests, and have
// only the rights of manifests/. Everything listens on 127.0.0.1. No child outlives its parent.
//
// Three things differ from a cluster made by kubeadm:
//
//   - The admission plugin ServiceAccount is off, so that pods need no service account in their namespace. Nothing here
//     mounts tokens.
//   - TaintNodesByCondition is off, because no node life-cycle controller runs that would remove the taint.
//   - etcd does not sync its files.
package controlplane
