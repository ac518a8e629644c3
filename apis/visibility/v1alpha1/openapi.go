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

package v1alpha1

// modelPrefix begins the names of the types in OpenAPI documents.
const modelPrefix = "io.x-k8s.koord-queue.visibility.v1alpha1."

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (Queue) OpenAPIModelName() string { return modelPrefix + "Queue" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (QueueList) OpenAPIModelName() string { return modelPrefix + "QueueList" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (LocalQueue) OpenAPIModelName() string { return modelPrefix + "LocalQueue" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (LocalQueueList) OpenAPIModelName() string { return modelPrefix + "LocalQueueList" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (WaitingUnitList) OpenAPIModelName() string { return modelPrefix + "WaitingUnitList" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (Quota) OpenAPIModelName() string { return modelPrefix + "Quota" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (QuotaList) OpenAPIModelName() string { return modelPrefix + "QuotaList" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (LocalQuota) OpenAPIModelName() string { return modelPrefix + "LocalQuota" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (LocalQuotaList) OpenAPIModelName() string { return modelPrefix + "LocalQuotaList" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (Unit) OpenAPIModelName() string { return modelPrefix + "Unit" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (UnitList) OpenAPIModelName() string { return modelPrefix + "UnitList" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (Audit) OpenAPIModelName() string { return modelPrefix + "Audit" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (AuditList) OpenAPIModelName() string { return modelPrefix + "AuditList" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (PageOptions) OpenAPIModelName() string { return modelPrefix + "PageOptions" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (Record) OpenAPIModelName() string { return modelPrefix + "Record" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (RecordList) OpenAPIModelName() string { return modelPrefix + "RecordList" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (Forecast) OpenAPIModelName() string { return modelPrefix + "Forecast" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (ForecastList) OpenAPIModelName() string { return modelPrefix + "ForecastList" }

// OpenAPIModelName is the name of the type in OpenAPI documents.
func (Snapshot) OpenAPIModelName() string { return modelPrefix + "Snapshot" }
