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

// Package tenancyparams keeps the ConfigMap that the controller and the policies of tenancy both read. The controller
// writes the namespaces in which jobs without a quota are queued. Administrators write the longest
// terminationGracePeriodSeconds of a queued job.
package tenancyparams

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ancestors"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

const (
	// Namespaces is the key that lists, a line each, where jobs are queued that name no quota and no queue. The policies
	// bound all jobs there.
	Namespaces = "namespaces"
	// termination is the key of how many seconds a pod may take to end.
	termination = "terminationGracePeriodSeconds"
	// DefaultTermination is that bound where nobody sets another.
	DefaultTermination = 3600
	// mostBytes of all lines. The ConfigMap has room for eight times as much.
	mostBytes = 128 << 10

	// checkAgain is when the ConfigMap is read again: administrators write it.
	checkAgain = time.Minute

	fieldOwner = client.FieldOwner(v1alpha1.CreatedByController)
)

// Params are what the controller reads. They are safe for concurrent use. The zero value, and nil, has the defaults.
type Params struct{ termination atomic.Int64 }

// Termination is the longest terminationGracePeriodSeconds of pods of a job that is queued.
func (p *Params) Termination() int64 {
	if p == nil || p.termination.Load() == 0 {
		return DefaultTermination
	}
	return p.termination.Load()
}

// read the settings of administrators. The default replaces any value that is no number above zero.
func (p *Params) read(data map[string]string) {
	n, err := strconv.ParseInt(data[termination], 10, 64)
	if err != nil || n < 0 {
		n = 0
	}
	p.termination.Store(n)
}

// Reconciler writes the namespaces and reads the bound.
type Reconciler struct {
	ConfigMap types.NamespacedName
	// Client reads namespaces and quotas from the cache. Live reads from the API server.
	Client client.Client
	Live   client.Reader
	// Predicate in force.
	Predicate func() *managedjobs.Predicate
	Params    *Params
}

// Reconcile writes the namespaces if they differ.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	have := &corev1.ConfigMap{}
	if err := r.Live.Get(ctx, r.ConfigMap, have); err != nil {
		return ctrl.Result{RequeueAfter: checkAgain}, client.IgnoreNotFound(err)
	}
	r.Params.read(have.Data)
	names, err := r.unnamed(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	text, left := lines(names)
	if left > 0 {
		klog.FromContext(ctx).Info("There are too many namespaces: the policies do not bound the jobs of some",
			"namespaces", left)
	}
	if have.Data[Namespaces] == text {
		return ctrl.Result{RequeueAfter: checkAgain}, nil
	}
	want := have.DeepCopy()
	if want.Data == nil {
		want.Data = map[string]string{}
	}
	want.Data[Namespaces] = text
	err = r.Client.Patch(ctx, want, client.MergeFrom(have), fieldOwner)
	return ctrl.Result{RequeueAfter: checkAgain}, client.IgnoreNotFound(err)
}

// unnamed are the namespaces without the label of managed namespaces, in which jobs are queued all the same.
func (r *Reconciler) unnamed(ctx context.Context) (names []string, err error) {
	quotas, err := elasticquota.List(ctx, r.Client, &client.ListOptions{})
	if err != nil {
		return nil, err
	}
	mapped := map[string]bool{}
	for i := range quotas {
		for _, name := range elasticquota.MappedNamespaces(&quotas[i]) {
			mapped[name] = true
		}
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	predicate := r.Predicate()
	for i := range list.Items {
		name, labels := list.Items[i].Name, list.Items[i].Labels
		if labels[v1alpha1.LabelManaged] != "true" && managedjobs.QueuesUnnamed(predicate, name, labels, mapped[name]) {
			names = append(names, name)
		}
	}
	return names, nil
}

// lines of the names. left is how many have none because all lines together would be too long.
func lines(names []string) (text string, left int) {
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(names)) {
		if b.Len()+len(name) >= mostBytes {
			left++
			continue
		}
		b.WriteString(name + "\n")
	}
	return b.String(), left
}

// Read fills the parameters before jobs are looked at.
func Read(ctx context.Context, from client.Reader, namespace string, into *Params) error {
	have := &corev1.ConfigMap{}
	err := from.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ancestors.ConfigMap}, have)
	if err == nil {
		into.read(have.Data)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
