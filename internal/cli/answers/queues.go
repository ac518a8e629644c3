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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// Queues are the queues that units of a namespace are in, or all of them if it is empty.
func Queues(ctx context.Context, r *Reader, namespace string) ([]visibility.Queue, error) {
	var queues []visibility.Queue
	for token := ""; ; {
		var meta metav1.ListMeta
		if namespace == "" {
			list := &visibility.QueueList{}
			if err := paged(r.live.Get().Resource("queues"), token).Do(ctx).Into(list); err != nil {
				return nil, err
			}
			queues, meta = append(queues, list.Items...), list.ListMeta
		} else {
			list := &visibility.LocalQueueList{}
			if err := paged(r.live.Get().Namespace(namespace).Resource("localqueues"), token).Do(ctx).Into(list); err != nil {
				return nil, err
			}
			for _, q := range list.Items {
				queues = append(queues, visibility.Queue(q))
			}
			meta = list.ListMeta
		}
		if token = meta.Continue; token == "" {
			return queues, nil
		}
	}
}

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
