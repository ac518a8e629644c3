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
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// visiblePlaces asks the scheduler for the waiting units of the queues, by queue. nil when it does not answer:
// the table then falls back to what the API server knows.
func visiblePlaces(ctx context.Context, scheduler string) map[string][]place {
	places := map[string][]place{}
	for _, queue := range queueNames() {
		answer, err := visibleQueue(ctx, scheduler, queue)
		if err != nil {
			return nil
		}
		for _, unit := range answer.Items {
			places[queue] = append(places[queue], place{
				position: unit.Position,
				key:      unit.Namespace + "/" + unit.Name,
				reason:   unit.Reason,
				message:  unit.Message,
			})
		}
	}
	return places
}

type queueAnswer struct {
	Items []struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Position  int    `json:"position"`
		Reason    string `json:"reason"`
		Message   string `json:"message"`
	} `json:"items"`
}

func visibleQueue(ctx context.Context, scheduler, queue string) (answer queueAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		scheduler+"/apis/v1/plugins/JobQueue/queues/"+queue+"/waitingunits?limit=20", nil)
	if err != nil {
		return answer, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("%s: %s", req.URL, resp.Status)
	}
	const limit = 8 << 20
	return answer, json.NewDecoder(io.LimitReader(resp.Body, limit)).Decode(&answer)
}
