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
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	visibilityv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// nearlyAtOnce is how far a forecast of a short wait may be off.
const nearlyAtOnce = 5 * time.Second

// forecasts are the first answers about units, by their keys, and when each was given.
type forecasts map[string]forecast

type forecast struct {
	at            time.Time
	about, latest time.Time
}

// askNext asks when one more of the waiting units will be admitted.
func (f forecasts) askNext(ctx context.Context, client rest.Interface, now time.Time, places map[string][]place) {
	for _, queue := range slices.Sorted(maps.Keys(places)) {
		for _, p := range places[queue] {
			if _, known := f[p.key]; known {
				continue
			}
			if answer, ok := ask(ctx, client, p.key); ok {
				answer.at = now
				f[p.key] = answer
			}
			return
		}
	}
}

func ask(ctx context.Context, client rest.Interface, key string) (answer forecast, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	namespace, name, _ := strings.Cut(key, "/")
	raw, err := client.Get().AbsPath("/apis", visibilityv1alpha1.SchemeGroupVersion.String(), "namespaces", namespace,
		"units", name, "forecast").DoRaw(ctx)
	var says visibilityv1alpha1.Forecast
	if err != nil || json.Unmarshal(raw, &says) != nil {
		return forecast{}, false
	}
	if says.Status.About != nil {
		answer.about = says.Status.About.Time
	}
	if says.Status.Latest != nil {
		answer.latest = says.Status.Latest.Time
	}
	return answer, true
}

// judge compares the answers with the admissions that came, and says the result in words; nothing was asked is "".
func (f forecasts) judge(admitted map[string]time.Time) string {
	asked, right, bounded, held := 0, 0, 0, 0
	for key, said := range f {
		at, known := admitted[key]
		if !known {
			continue
		}
		asked++
		if !said.about.IsZero() && said.about.Sub(at).Abs() <= max(nearlyAtOnce, at.Sub(said.at)/4) {
			right++
		}
		if !said.latest.IsZero() {
			bounded++
			if !at.After(said.latest.Add(nearlyAtOnce)) {
				held++
			}
		}
	}
	if asked == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d were right within 5 s or a quarter of the wait, %d of %d bounds held", right, asked, held,
		bounded)
}
