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
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	visibilityv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
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

// awaitQuotas returns when the aggregated API knows the quotas of all queues. A scheduler that has just started answers
// before it has observed them.
func awaitQuotas(ctx context.Context, cp *controlplane.ControlPlane) error {
	client, err := kubernetes.NewForConfig(cp.RESTConfig(controlplane.Admin))
	if err != nil {
		return err
	}
	for _, levels := range quotaLevels() {
		for _, quota := range levels {
			path := []string{"/apis", visibilityv1alpha1.SchemeGroupVersion.String(), "quotas", quota}
			err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true,
				func(ctx context.Context) (bool, error) {
					_, err := client.RESTClient().Get().AbsPath(path...).DoRaw(ctx)
					return err == nil, nil
				})
			if err != nil {
				return fmt.Errorf("the scheduler does not know quota %s: %w", quota, err)
			}
		}
	}
	return nil
}
