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

package scheduler

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwktype "k8s.io/kube-scheduler/framework"

	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/defaultprebind"
)

// preBind is DefaultPreBind. A scheduler that ends or loses its lease cancels what it writes; Koordinator v1.8.0 takes
// that for a success without a pod, and panics. Here it is an error of the binding.
type preBind struct{ *defaultprebind.Plugin }

var _ frameworkext.PreBindExtensions = preBind{}

func newPreBind(ctx context.Context, args runtime.Object, handle fwktype.Handle) (fwktype.Plugin, error) {
	plugin, err := defaultprebind.New(ctx, args, handle)
	theirs, ok := plugin.(*defaultprebind.Plugin)
	if err != nil || !ok {
		return plugin, err
	}
	return preBind{theirs}, nil
}

// ApplyPatch implements frameworkext.PreBindExtensions.
func (p preBind) ApplyPatch(
	ctx context.Context, state fwktype.CycleState, original, modified metav1.Object,
) (status *fwktype.Status) {
	defer func() {
		if ended := ctx.Err(); ended != nil && recover() != nil {
			status = fwktype.AsStatus(ended)
		}
	}()
	return p.Plugin.ApplyPatch(ctx, state, original, modified)
}
