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

package submit

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Gang is how the pods of a job are placed together. Its parameters are those of YuniKorn; other systems get what they
// have of them.
type Gang struct {
	// Timeout is how long the system waits for all pods, in whole seconds; zero is the default of the system.
	Timeout time.Duration
	// Soft lets the pods start one by one after the timeout. Otherwise the job waits on.
	Soft bool
}

// Parameters of YuniKorn's gangs, as in its annotation.
const (
	timeoutParameter = "placeholderTimeoutInSeconds"
	styleParameter   = "gangSchedulingStyle"
	styleHard        = "Hard"
	styleSoft        = "Soft"
)

// ParseGang reads the parameters of YuniKorn: "placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard".
func ParseGang(text string) (*Gang, error) {
	g := &Gang{Soft: true} // the default of YuniKorn
	seen := map[string]bool{}
	for _, word := range strings.Fields(text) {
		key, value, _ := strings.Cut(word, "=")
		if seen[key] {
			return nil, fmt.Errorf("gang parameter %.40q: %w: it is there twice", key, ErrInvalid)
		}
		seen[key] = true
		switch {
		case key == timeoutParameter:
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("gang parameter %s=%.40s: %w: want seconds, at least 1", key, value, ErrInvalid)
			}
			g.Timeout = time.Duration(n) * time.Second
		case key == styleParameter && (value == styleHard || value == styleSoft):
			g.Soft = value == styleSoft
		case key == styleParameter:
			return nil, fmt.Errorf("gang parameter %s=%.40s: %w: want %s or %s", key, value, ErrInvalid, styleHard, styleSoft)
		default:
			return nil, fmt.Errorf("gang parameter %.40q: %w: want %s or %s", word, ErrInvalid, timeoutParameter, styleParameter)
		}
	}
	return g, nil
}

// String is the form that ParseGang reads.
func (g *Gang) String() string {
	style := styleHard
	if g.Soft {
		style = styleSoft
	}
	if g.Timeout == 0 {
		return styleParameter + "=" + style
	}
	return fmt.Sprintf("%s=%d %s=%s", timeoutParameter, g.seconds(), styleParameter, style)
}

func (g *Gang) seconds() int64 { return int64(g.Timeout / time.Second) }

func (g *Gang) check() error {
	if g == nil {
		return nil
	}
	if g.Timeout < 0 || g.Timeout%time.Second != 0 || g.Timeout > maxSeconds*time.Second {
		return fmt.Errorf("timeout of the gang %s: %w: want whole seconds", g.Timeout, ErrInvalid)
	}
	return nil
}

// gang has what a group object says of the pods.
type gang struct {
	name string
	// minimum of pods that are placed together; zero if the pods cannot be.
	minimum int32
	// total is the number of pods of the gang.
	total int32
	// resources of the least number of pods, and of those that come later: these are reserved, and not waited for. Empty
	// if the minimum is fewer pods than that: the object does not say which.
	resources amounts
}

// gang of the job. Pods that come later are no members: they would be waited for by what makes them.
func (w *work) gang() (*gang, error) {
	g := &gang{name: w.groupName(), resources: amounts{}}
	var err error
	if g.minimum, err = w.kind.gangMinimum(w.object, w.sets); err != nil {
		return nil, err
	}
	least := int32(0)
	for i := range w.sets {
		s := &w.sets[i]
		if s.inGang() {
			g.total, least = sum(g.total, s.Count), sum(least, s.MinCount)
		}
		request, err := s.request()
		if err != nil {
			return nil, err
		}
		g.resources.add(request.times(s.MinCount))
	}
	if g.minimum < least {
		g.resources = amounts{}
	}
	return g, nil
}

func (g *gang) spec() Object {
	spec := Object{"minMember": int64(g.minimum)}
	if resources := g.resources.object(); len(resources) > 0 {
		spec["minResources"] = resources
	}
	return spec
}

// each gives the same metadata to all pods of the gang.
func (w *work) each(m Metadata) map[string]Metadata {
	all := map[string]Metadata{}
	for i := range w.sets {
		if w.sets[i].inGang() {
			all[w.sets[i].Name] = m
		}
	}
	return all
}

// groupMeta is the metadata of an object that is made for the job.
func (w *work) groupMeta(name string) Object {
	metadata := Object{"name": name}
	if namespace := w.text("metadata", "namespace"); namespace != "" {
		metadata["namespace"] = namespace
	}
	return metadata
}
