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

package finding

// Reason is a stable code for what a finding is about. docs/operators/migrate.md has what each means.
type Reason string

// Reasons of findings about the input.
const (
	TooLarge        Reason = "TooLarge"
	TooMany         Reason = "TooMany"
	Unreadable      Reason = "Unreadable"
	UnknownField    Reason = "UnknownField"
	UnknownKind     Reason = "UnknownKind"
	DuplicateObject Reason = "DuplicateObject"
	InvalidAmount   Reason = "InvalidAmount"
	ObjectNotFound  Reason = "ObjectNotFound"
	ParentCycle     Reason = "ParentCycle"
)

// Reasons of findings about quotas.
const (
	Renamed             Reason = "Renamed"
	NameTaken           Reason = "NameTaken"
	ParentLeftOut       Reason = "ParentLeftOut"
	NoLimit             Reason = "NoLimit"
	MinAboveMax         Reason = "MinAboveMax"
	MinAboveParent      Reason = "MinAboveParent"
	QuotaPerFlavor      Reason = "QuotaPerFlavor"
	FlavorLeftOut       Reason = "FlavorLeftOut"
	NodesNotBound       Reason = "NodesNotBound"
	LendingAllOrNothing Reason = "LendingAllOrNothing"
	GuaranteeLent       Reason = "GuaranteeLent"
	ShareByWeight       Reason = "ShareByWeight"
	ResourceNotCounted  Reason = "ResourceNotCounted"
	UnlistedResources   Reason = "UnlistedResources"
	DynamicQueues       Reason = "DynamicQueues"
	LimitPerUser        Reason = "LimitPerUser"
)

// Reasons of findings about queues, jobs and rights.
const (
	LabelsOfJobs      Reason = "LabelsOfJobs"
	OrderDiffers      Reason = "OrderDiffers"
	PreemptionDiffers Reason = "PreemptionDiffers"
	CheckNotAnswered  Reason = "CheckNotAnswered"
	NumberAsPriority  Reason = "NumberAsPriority"
	PlacementRule     Reason = "PlacementRule"
	RightsNotGranted  Reason = "RightsNotGranted"
	RightsDiffer      Reason = "RightsDiffer"
	NamespaceChanged  Reason = "NamespaceChanged"
	UnitsNotMoved     Reason = "UnitsNotMoved"
	NotExpressed      Reason = "NotExpressed"
)
