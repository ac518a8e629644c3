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

package operators_test

// jobKind is what the stories need to know of a kind; the facts that they check are theirs.
type jobKind struct {
	// name is the kind in lower case, and the file in test/harness/testjobs.
	name string
	// suspend is where the job is suspended.
	suspend []string
	// pods that it has when all run, and those that are created only once others run.
	pods int
	// owners of a pod, from its controller upwards.
	owners []string
	// otherOwners of some of its pods, in place of owners.
	otherOwners []string
	// decides is a part of the name of the container of the pods by which it ends; empty if all count.
	decides string
	// endless: it ends when it is deleted. keepsPods: what runs goes on while it is suspended.
	endless, keepsPods bool
	// early: some of what makes its pods is made before it is suspended, and is not changed afterwards.
	early bool
}

func kubeflow(name, kind string, pods int) jobKind {
	return jobKind{name: name, suspend: []string{"spec", "runPolicy", "suspend"}, pods: pods, owners: []string{kind}}
}

var jobKinds = []jobKind{
	kubeflow("pytorchjob", "PyTorchJob", 3),
	kubeflow("tfjob", "TFJob", 4),
	kubeflow("xgboostjob", "XGBoostJob", 3),
	kubeflow("paddlejob", "PaddleJob", 3),
	kubeflow("jaxjob", "JAXJob", 2),
	kubeflow("mpijob", "MPIJob", 3),
	{name: "jobset", suspend: []string{"spec", "suspend"}, pods: 5, owners: []string{"Job", "JobSet"}},
	{name: "trainjob", suspend: []string{"spec", "suspend"}, pods: 3, owners: []string{"Job", "JobSet", "TrainJob"}},
	{
		name: "rayjob", suspend: []string{"spec", "suspend"}, pods: 3,
		owners: []string{"RayCluster", "RayJob"}, otherOwners: []string{"Job", "RayJob"}, decides: "submitter",
	},
	{name: "raycluster", suspend: []string{"spec", "suspend"}, pods: 3, owners: []string{"RayCluster"}, endless: true},
}
