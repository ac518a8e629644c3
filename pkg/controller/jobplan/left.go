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

package jobplan

// Pods of a job that was deleted without them run on: by `--cascade=orphan`, or because a finalizer keeps the job. They
// keep the quota of their unit, and there is no job that could be suspended when that is taken back. Where it is so
// configured, they end.

// endLeft ends what the job of an admitted unit has left behind, and then goes on.
func endLeft(s *Situation, then Decision) Decision {
	switch {
	case !s.EndsLeft || s.Unit.Status.Attempts == 0:
		return then
	case s.Left == nil:
		return look(LookAtLeft)
	case len(s.Left) > 0:
		then.Do = append([]Action{EndPods{Pods: s.Left}}, then.Do...)
	}
	return then
}
