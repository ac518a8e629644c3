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

package jobs

import "slices"

// MetadataPlace is where whoever writes a job gives labels and annotations to it, to its pods, or to what is made of it
// on the way to them. Each is a path with stars, and nil where there is no such field.
type MetadataPlace struct {
	Labels, Annotations Path
	// NodeName is where pods of the template beside are bound to a node.
	NodeName Path
}

// MetadataPlaces are all of them, that of the job itself first. What is in a child is not the job's owner's to write.
func (k *Kind) MetadataPlaces() []MetadataPlace {
	places := []MetadataPlace{metadataOf(nil)}
	if k.OfPods() {
		return places // what the descriptor describes is made of them
	}
	for i := range k.sets {
		places = append(places, k.sets[i].metadataPlaces()...)
	}
	for _, p := range k.podMetadata {
		place := MetadataPlace{Labels: p.child(string(labelsKey)), Annotations: p.child(string(annotationsKey))}
		if last := len(p) - 1; p[last] == "metadata" {
			place.NodeName = p[:last].child("spec", "nodeName")
		}
		places = append(places, place)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(places, func(p MetadataPlace) bool {
		key := p.Labels.String() + p.Annotations.String()
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

func metadataOf(object Path) MetadataPlace {
	at := object.child("metadata")
	return MetadataPlace{Labels: at.child(string(labelsKey)), Annotations: at.child(string(annotationsKey))}
}

func (r *podSetRule) metadataPlaces() (places []MetadataPlace) {
	if len(r.path) > 0 && r.path[0] == childKey {
		return nil
	}
	at := r.path
	if r.optional && !r.stars && len(at) > 2 {
		// One key of a map: an operator may take others, or the same one in other letters.
		at = at[:len(at)-1].child(star)
	}
	whole := func(given source) Path {
		switch {
		case len(given.path) == 0 || given.ofJob:
			return given.path
		default:
			return at.child(given.path...)
		}
	}
	if given := (MetadataPlace{Labels: whole(r.labels), Annotations: whole(r.annotations)}); given.Labels != nil ||
		given.Annotations != nil {
		places = append(places, given)
	}
	for _, template := range r.templates {
		t := at.child(template...)
		// What has a spec on the way has metadata: the Jobs that a JobSet makes.
		for i := 1; i < len(t); i++ {
			if t[i] == "spec" {
				places = append(places, metadataOf(t[:i]))
			}
		}
		place := metadataOf(t)
		place.NodeName = t.child("spec", "nodeName")
		places = append(places, place)
	}
	return places
}
