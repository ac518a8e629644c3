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

package main

import (
	"context"
	"encoding/json"
	"time"

	"k8s.io/client-go/rest"

	visibilityv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// visiblePlaces asks the aggregated API for the waiting units of the queues, by queue. nil when it does not answer:
// the table then falls back to what the API server knows.
func visiblePlaces(ctx context.Context, client rest.Interface) map[string][]place {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	places := map[string][]place{}
	for _, queue := range queueNames() {
		raw, err := client.Get().AbsPath("/apis", visibilityv1alpha1.SchemeGroupVersion.String(), "queues", queue,
			"waitingunits").Param("limit", "20").DoRaw(ctx)
		var answer visibilityv1alpha1.WaitingUnitList
		if err != nil || json.Unmarshal(raw, &answer) != nil {
			return nil
		}
		for i := range answer.Items {
			unit := &answer.Items[i]
			places[queue] = append(places[queue], place{
				position: int(unit.Position),
				key:      unit.Namespace + "/" + unit.Name,
				reason:   unit.Reason,
				message:  unit.Message,
			})
		}
	}
	return places
}
