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

// Package provisioning answers AdmissionChecks with capacity of a cluster autoscaler. If quota is reserved for a unit,
// the package creates a ProvisioningRequest. The check is Ready when the nodes exist.
//
// Each reservation has a request of its own, named after it. So an answer about a former reservation is about an object
// of another name. A pure plan follows from unit, parameters and request. The other files read its input and carry it
// out.
package provisioning
