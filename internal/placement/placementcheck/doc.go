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

// Package placementcheck answers admission checks by placement: a job is released if all its pods find a node at once.
// It remembers nodes that were found for one job, and does not give them to another. Before a reclaim takes quota, the
// engine asks here whether the pods would find nodes afterwards.
package placementcheck
