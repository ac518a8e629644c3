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

package doctor

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

// AddFlags adds a flag for each name.
func (n *Names) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&n.QueueNamespace, "queue-namespace", v1alpha1.DefaultQueueNamespace,
		"namespace of Queues and controller")
	fs.StringVar(&n.SchedulerNamespace, "scheduler-namespace", "koordinator-system", "namespace of koord-scheduler")
	fs.StringVar(&n.SchedulerLease, "scheduler-lease", "koord-scheduler", "name of the Lease of koord-scheduler")
	fs.StringVar(&n.ControllerLease, "controller-lease", "jobqueue-controller", "name of the Lease of jobqueue-controller")
}

// Find reads the installation with the rights of a client configuration, and examines it.
func Find(ctx context.Context, config *rest.Config, names Names, now time.Time) ([]Finding, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, authorizationv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		schedulingv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	objects, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	reader, err := answers.New(config)
	if err != nil {
		return nil, err
	}
	from := Cluster{Objects: objects, Discovery: served, Audit: reader.Audit}
	return Examine(Read(ctx, from, names, now)), nil
}
