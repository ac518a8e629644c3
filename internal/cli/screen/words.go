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

package screen

import (
	"time"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// Expectation is when a unit will be admitted, in one line; empty without a time.
func Expectation(now time.Time, s *visibility.ForecastStatus) string { return expectation(now, s) }

// Reason is why the unit has not got what it asks for, as the page of Why names it.
func (s *Story) Reason() (reason, message string) { return s.reason() }
