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

// Package growth computes how much an admitted unit holds, and how much it asks for beyond that.
//
// A unit holds its request at the time of its admission. An adopted unit holds the request of the pods that were bound
// at that time. If the job or its pods ask for more later, the unit is in line again for the difference, and keeps what
// it holds. If the job asks for less, the unit gives the difference back at once. Until a write of a new amount is
// confirmed, the unit holds the greater of both amounts.
//
// A unit with several sizes never asks for more than it was admitted with. Its owner must give it one size to let it
// grow.
package growth
