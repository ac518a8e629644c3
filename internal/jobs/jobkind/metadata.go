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

package jobkind

import "slices"

// MetadataPlace is where the author of a job gives labels and annotations: to the job, to its pods, or to objects in
// between. Each is a path with stars, and nil without such a field.
type MetadataPlace struct {
	Labels, Annotations Path
	// NodeName is where pods of the template with this metadata are bound to a node.
	NodeName Path
}

// MetadataPlaces are all places, that of the job itself first. The owner of a job does not write its child.
func (k *Kind) MetadataPlaces() []MetadataPlace {
	places := []MetadataPlace{metadataOf(nil)}
	if k.OfPods() {
		return places // the descriptor describes the objects that are made of the pods
	}
	for i := range k.Sets {
		places = append(places, metadataPlacesOf(&k.Sets[i])...)
	}
	for _, p := range k.podMetadata {
		place := MetadataPlace{Labels: p.Child(string(LabelsKey)), Annotations: p.Child(string(AnnotationsKey))}
		if last := len(p) - 1; p[last] == "metadata" {
			place.NodeName = p[:last].Child("spec", "nodeName")
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
	at := object.Child("metadata")
	return MetadataPlace{Labels: at.Child(string(LabelsKey)), Annotations: at.Child(string(AnnotationsKey))}
}

func metadataPlacesOf(r *Set) (places []MetadataPlace) {
	if len(r.Path) > 0 && r.Path[0] == ChildKey {
		return nil
	}
	at := r.Path
	if r.Optional && !r.Stars && len(at) > 2 {
		// One key of a map: an operator may take others, or the same one in other letters.
		at = at[:len(at)-1].Child(Star)
	}
	whole := func(given Source) Path {
		switch {
		case len(given.Path) == 0 || given.OfJob:
			return given.Path
		default:
			return at.Child(given.Path...)
		}
	}
	if given := (MetadataPlace{Labels: whole(r.Labels), Annotations: whole(r.Annotations)}); given.Labels != nil ||
		given.Annotations != nil {
		places = append(places, given)
	}
	for _, template := range r.Templates {
		t := at.Child(template...)
		// An object with a spec on the way has metadata, as the Jobs of a JobSet.
		for i := 1; i < len(t); i++ {
			if t[i] == "spec" {
				places = append(places, metadataOf(t[:i]))
			}
		}
		place := metadataOf(t)
		place.NodeName = t.Child("spec", "nodeName")
		places = append(places, place)
	}
	return places
}
