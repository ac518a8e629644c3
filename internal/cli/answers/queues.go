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

package answers

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// LineFrom is a part of the line of a queue: up to limit units behind the first ones. A reader of one namespace gets it
// as the namespace may see it.
func LineFrom(
	ctx context.Context, r *Reader, namespace, queue string, from, limit int,
) (*visibility.WaitingUnitList, error) {
	list := &visibility.WaitingUnitList{}
	ask := func(request *rest.Request) error {
		return request.Name(queue).SubResource("waitingunits").Param("limit", fmt.Sprint(limit)).
			Param("offset", fmt.Sprint(from)).Do(ctx).Into(list)
	}
	err := ask(r.live.Get().Resource("queues"))
	if apierrors.IsForbidden(err) && namespace != "" {
		err = ask(r.live.Get().Namespace(namespace).Resource("localqueues"))
	}
	return list, err
}
