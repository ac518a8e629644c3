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

// Package objectstest makes objects in the form of an API server, for tests.
package objectstest

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Texts of a QueueUnit as an API server sends it, and of its statuses.
const (
	ManagedFields = `"managedFields":[{"apiVersion":"scheduling.x-k8s.io/v1alpha1","fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:koord-queue/submitted-by":{}},"f:labels":{".":{},` +
		`"f:app.kubernetes.io/name":{},"f:quota.scheduling.koordinator.sh/name":{}},"f:ownerReferences":{".":{},` +
		`"k:{\"uid\":\"7d3b2c1e-5f4a-4b6d-8c9e-000000000001\"}":{}}},"f:spec":{".":{},"f:consumerRef":{},` +
		`"f:podSet":{".":{},"k:{\"name\":\"main\"}":{".":{},"f:count":{},"f:name":{},"f:template":{}}},"f:priority":{},` +
		`"f:queue":{},"f:request":{".":{},"f:cpu":{},"f:memory":{}}}},"manager":"jobqueue-controller","operation":"Update",` +
		`"time":"2026-01-01T00:00:00Z"}]`

	textUnit = `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit",` +
		`"metadata":{"annotations":{"koord-queue/submitted-by":"alice@example.com"},` +
		`"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,` +
		`"labels":{"app.kubernetes.io/name":"resnet","quota.scheduling.koordinator.sh/name":"team-1"},` +
		ManagedFields + `,` +
		`"name":"job-train-%[1]d","namespace":"team","ownerReferences":[{"apiVersion":"batch/v1","blockOwnerDeletion":true,` +
		`"controller":true,"kind":"Job","name":"train-%[1]d","uid":"7d3b2c1e-5f4a-4b6d-8c9e-%012[1]d"}],` +
		`"resourceVersion":"%[2]d","uid":"a1b2c3d4-1111-4222-8333-%012[1]d"},` +
		`"spec":{"consumerRef":{"apiVersion":"batch/v1","kind":"Job","name":"train-%[1]d","namespace":"team",` +
		`"uid":"7d3b2c1e-5f4a-4b6d-8c9e-%012[1]d"},"podSet":[{"count":1,"name":"main",` +
		`"template":{"metadata":{"labels":{"quota.scheduling.koordinator.sh/name":"team-1"}},` +
		`"spec":{"containers":[{"args":["--epochs=90"],"command":["python","train.py"],` +
		`"image":"registry.example.com/ml/resnet:1.4.2","name":"main","resources":{"limits":{"cpu":"4","memory":"4Gi"},` +
		`"requests":{"cpu":"4","memory":"4Gi"}}}],"restartPolicy":"Never"}}}],"priority":100,"queue":"team-1",` +
		`"request":{"cpu":"4","memory":"4Gi"}},` +
		`"status":%[3]s}`

	Waiting  = `{"phase":"Enqueued"}`
	Admitted = `{"admissions":[{"name":"main","replicas":1,"resources":{"cpu":"4","memory":"4Gi"}}],"attempts":1,` +
		`"conditions":[` +
		`{"lastTransitionTime":"2026-01-01T00:00:05Z","message":"quota is reserved: cpu: 4, memory: 4Gi",` +
		`"observedGeneration":1,"reason":"QuotaReserved","status":"True","type":"QuotaReserved"},` +
		`{"lastTransitionTime":"2026-01-01T00:00:05Z","message":"admitted, attempt 1","observedGeneration":1,` +
		`"reason":"Admitted","status":"True","type":"Admitted"}],` +
		`"lastAllocateTime":"2026-01-01T00:00:05Z","lastUpdateTime":"2026-01-01T00:00:05Z","message":"","phase":"Dequeued"}`
	Requeued = `{"attempts":2,"conditions":[{"lastTransitionTime":"2026-01-01T00:00:05Z",` +
		`"message":"pods of \"main\" are missing","reason":"Evicted","status":"True","type":"Evicted"}],` +
		`"message":"pods of \"main\" are missing","phase":"Enqueued","podState":{"pending":0,"running":0},` +
		`"requeueState":{"count":1,"requeueAt":"2026-01-01T00:01:00Z"}}`
)

// Ended is the status of a job that ended well.
var Ended = strings.Replace(Admitted, "Dequeued", "Succeed", 1)

// Unit of a number, in a version, with a status.
func Unit(number, version int, status string) string {
	return fmt.Sprintf(textUnit, number, version, status)
}

const (
	textQueue = `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue",` +
		`"metadata":{"annotations":{"koord-queue/priority-threshold":"7","other":"x"},` +
		`"creationTimestamp":"2026-01-01T00:00:00Z","generation":2,` +
		`"managedFields":[{"apiVersion":"scheduling.x-k8s.io/v1alpha1","fieldsType":"FieldsV1",` +
		`"fieldsV1":{"f:status":{".":{},"f:admitted":{},"f:pending":{}}},"manager":"koord-scheduler","operation":"Update",` +
		`"subresource":"status","time":"2026-01-01T00:00:00Z"}],` +
		`"name":"team-1","namespace":"koord-queue","resourceVersion":"%[1]d","uid":"a1b2c3d4-1111-4222-8333-000000000001"},` +
		`"spec":{"maxAdmitted":9,"priority":3,"queuePolicy":"Block"},"status":%[2]s}`

	Active = `"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"the queue admits units",` +
		`"observedGeneration":2,"reason":"Ready","status":"True","type":"Active"}]`
)

// QueueStatus lists so many units that wait.
func QueueStatus(items int) string {
	list := make([]string, items)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name":"job-train-%06d","namespace":"team","position":%d,"priority":100}`, i, i+1)
	}
	return `{"admitted":4,` + Active + fmt.Sprintf(`,"pending":%d,"queueItemDetails":{"active":[`, items) +
		strings.Join(list, ",") + `]}}`
}

// Queue in a version, with a status.
func Queue(version int, status string) string { return fmt.Sprintf(textQueue, version, status) }

// Fields of a struct that can be set, exported or not.
func Fields(of reflect.Value) (list []reflect.Value) {
	for i := range of.NumField() {
		f := of.Field(i)
		list = append(list, reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem())
	}
	return list
}

// Fill sets a value to another one than zero, and all that is in it.
func Fill(v reflect.Value) {
	v = reflect.NewAt(v.Type(), v.Addr().UnsafePointer()).Elem()
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		Fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		Fill(v.Index(0))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
			return
		}
		for _, f := range Fields(v) {
			Fill(f)
		}
	default:
		panic("a field of kind " + v.Kind().String() + ": teach fill to set it")
	}
}
