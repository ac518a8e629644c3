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

// Package provisioning answers AdmissionChecks by asking a cluster autoscaler for capacity: once quota is reserved for
// a unit it makes a ProvisioningRequest, and the job may go when the nodes are there.
//
// There is one request for each reservation, named after it: what was said about the request of a former reservation is
// about an object of another name. What follows from unit, parameters and request is a pure plan; the rest reads what
// the plan needs and carries it out.
package provisioning
