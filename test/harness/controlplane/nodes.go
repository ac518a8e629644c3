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

package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	nodeWorkers      = 8
	nodeReadyTimeout = 60 * time.Second
)

// NodeName returns the name of the i-th node, from 0.
func NodeName(i int) string { return fmt.Sprintf("node-%04d", i) }

// CreateNodes creates missing nodes 0 to n-1 with the size of the Options. With KWOK among the components, it waits
// until all of them are ready.
func (c *ControlPlane) CreateNodes(ctx context.Context, n int) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig(Admin))
	if err != nil {
		return err
	}
	allocatable, err := c.nodeResources()
	if err != nil {
		return err
	}
	begin := c.opts.Clock.Now()
	status := corev1.NodeStatus{Allocatable: allocatable, Capacity: allocatable, Phase: corev1.NodeRunning}
	kwok := slices.Contains(c.opts.Components, KWOK)
	if !kwok {
		now := metav1.NewTime(begin)
		status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "NoKubelet",
			LastHeartbeatTime: now, LastTransitionTime: now,
		}}
	}
	if err := createNodes(ctx, client, n, &status); err != nil {
		return err
	}
	if !kwok {
		return nil
	}
	if err := awaitNodes(ctx, client, n); err != nil {
		return err
	}
	c.opts.Progress(fmt.Sprintf("%d nodes are ready after %.1fs", n, c.opts.Clock.Since(begin).Seconds()))
	return nil
}

func (c *ControlPlane) nodeResources() (corev1.ResourceList, error) {
	list := corev1.ResourceList{}
	for name, value := range map[corev1.ResourceName]string{
		corev1.ResourceCPU:              c.opts.NodeCPU,
		corev1.ResourceMemory:           c.opts.NodeMemory,
		corev1.ResourcePods:             c.opts.NodePods,
		corev1.ResourceEphemeralStorage: c.opts.NodeEphemeralStorage,
	} {
		if value == "" {
			continue
		}
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return nil, fmt.Errorf("options: %s of a node: %w", name, err)
		}
		list[name] = quantity
	}
	return list, nil
}

func createNodes(ctx context.Context, client kubernetes.Interface, n int, status *corev1.NodeStatus) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(nodeWorkers)
	for i := range n {
		group.Go(func() error {
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{
					Name: NodeName(i),
					Labels: map[string]string{
						corev1.LabelHostname:   NodeName(i),
						corev1.LabelOSStable:   "linux",
						corev1.LabelArchStable: "amd64",
					},
				},
				Status: *status,
			}
			_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
	}
	return group.Wait()
}

func awaitNodes(ctx context.Context, client kubernetes.Interface, n int) error {
	ready := 0
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, nodeReadyTimeout, true,
		func(ctx context.Context) (bool, error) {
			nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return false, err
			}
			ready = 0
			for i := range nodes.Items {
				if nodeReady(&nodes.Items[i]) {
					ready++
				}
			}
			return ready >= n, nil
		})
	if err != nil {
		return fmt.Errorf("%d of %d nodes are ready: %w", ready, n, err)
	}
	return nil
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}
