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

package intake

import (
	"hash/maphash"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intern"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
)

// JobMeta is what is kept of the metadata of a job, instead of all of it; immutable. There may be very many.
type JobMeta struct {
	path            string // namespace/name
	uid             types.UID
	resourceVersion string
	// traits are what jobs that are submitted together have in common.
	traits *jobTraits
	// name is how long the name is.
	name int32
	// leaving: the job is being deleted.
	leaving bool
}

type jobTraits struct {
	labels, annotations map[string]string
	owner               *metav1.OwnerReference
}

// Namespace of the job.
func (m *JobMeta) Namespace() string { return m.path[:max(0, len(m.path)-int(m.name)-1)] }

// Name of the job.
func (m *JobMeta) Name() string { return m.path[len(m.path)-int(m.name):] }

// UID of the job.
func (m *JobMeta) UID() types.UID { return m.uid }

// Labels of the job that say whether it is managed; they must not be changed.
func (m *JobMeta) Labels() map[string]string { return m.traits.labels }

// Annotations of the job that say whether it is managed and suspended, of bounded length; they must not be changed.
func (m *JobMeta) Annotations() map[string]string { return m.traits.annotations }

// isMarked says that the job carries the mark of a suspension, for which the gate holds its pods.
func (m *JobMeta) isMarked() bool { return m.traits.annotations[v1alpha1.AnnotationSuspendedBy] != "" }

// Owner is the controlling owner, nil if there is none; it must not be changed.
func (m *JobMeta) Owner() *metav1.OwnerReference { return m.traits.owner }

// GetObjectMeta implements metav1.ObjectMetaAccessor, for the informer that stores it.
func (m *JobMeta) GetObjectMeta() metav1.Object {
	return objects.StoredAs(m.path, m.uid, m.resourceVersion)
}

// TrimJobs is the transform of informers of jobs' metadata. It keeps only labels with these keys. Values that the
// author of a job can make long are cut or left out.
func TrimJobs(labelKeys []string) cache.TransformFunc {
	return func(obj any) (any, error) {
		if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
			return NewJobMeta(meta, labelKeys), nil
		}
		return obj, nil
	}
}

// readAnnotations are the keys of those annotations of a job that are read.
var readAnnotations = []string{v1alpha1.QueueNameKey, v1alpha1.QueuePathKey, v1alpha1.AnnotationSuspendedBy}

// longestKept is how much is kept of a value, and of what names an owner: as much as the longest name of an object.
const longestKept = 253

// trimmed are the values of some keys.
func trimmed(m map[string]string, keys []string) map[string]string {
	var kept map[string]string
	for _, key := range keys {
		value, ok := m[key]
		if !ok {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = strings.Clone(value[:min(len(value), longestKept)])
	}
	return kept
}

// ownerOf is the controlling owner. One of impossible length is none: the job is judged by itself.
func ownerOf(meta *metav1.PartialObjectMetadata) *metav1.OwnerReference {
	o := metav1.GetControllerOf(meta)
	if o != nil && max(len(o.APIVersion), len(o.Kind), len(o.Name), len(o.UID)) > longestKept {
		return nil
	}
	return o
}

func NewJobMeta(meta *metav1.PartialObjectMetadata, labelKeys []string) *JobMeta {
	m := &JobMeta{
		path: meta.Name, uid: meta.UID, resourceVersion: meta.ResourceVersion,
		name:    int32(len(meta.Name)), //nolint:gosec // the API takes no name that is longer than 253 bytes
		leaving: meta.DeletionTimestamp != nil,
	}
	if meta.Namespace != "" {
		m.path = meta.Namespace + "/" + meta.Name
	}
	traits := jobTraits{
		labels: trimmed(meta.Labels, labelKeys), annotations: trimmed(meta.Annotations, readAnnotations),
		owner: ownerOf(meta),
	}
	m.traits = sharedTraits.Of(&traits)
	return m
}

var sharedTraits = intern.NewPool(hashTraits, sameTraits)

func hashTraits(seed maphash.Seed, t *jobTraits) uint64 {
	sum := hashMap(seed, t.labels) ^ hashMap(seed, t.annotations)<<1
	if t.owner != nil {
		sum ^= maphash.String(seed, string(t.owner.UID)) << 2
	}
	return sum
}

func hashMap(seed maphash.Seed, m map[string]string) (sum uint64) {
	for key, value := range m {
		sum += maphash.String(seed, key) ^ maphash.String(seed, value)<<1
	}
	return sum
}

func sameTraits(a, b *jobTraits) bool {
	return maps.Equal(a.labels, b.labels) && maps.Equal(a.annotations, b.annotations) &&
		kinship.SameOwner(a.owner, b.owner)
}
