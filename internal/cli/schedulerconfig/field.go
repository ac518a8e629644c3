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

package schedulerconfig

import (
	"cmp"
	"fmt"
	"slices"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// field is a mapping or a list of the configuration. A missing field is attached to the configuration at its first
// change.
type field struct {
	node     *yaml.Node
	path     string
	attached bool
	in       *field
	key      string
}

func (f *field) to(key string) string {
	if f.path == "" {
		return key
	}
	return f.path + "." + key
}

func (f *field) attach() {
	if !f.attached {
		f.attached = true
		f.in.attach()
		f.in.node.Content = append(f.in.node.Content, scalar("!!str", f.key), f.node)
	}
	if len(f.node.Content) == 0 {
		f.node.Style &^= yaml.FlowStyle
	}
}

// is says that a field is a mapping or a list that is written in one place, with each key once.
func (f *field) is(kind yaml.Kind) error {
	name := map[yaml.Kind]string{yaml.MappingNode: "a mapping", yaml.SequenceNode: "a list"}[kind]
	if f.node.Kind != kind || f.node.Anchor != "" {
		return fmt.Errorf("%s: is not %s, or has an anchor", cmp.Or(f.path, "the configuration"), name)
	}
	if kind != yaml.MappingNode {
		return nil
	}
	keys := map[string]bool{}
	for i := 0; i < len(f.node.Content); i += 2 {
		key := f.node.Content[i]
		if key.Kind != yaml.ScalarNode || key.Tag != "!!str" || keys[key.Value] {
			return fmt.Errorf("%s: is no name of a field, or is there twice", f.to(key.Value))
		}
		keys[key.Value] = true
	}
	return nil
}

// value of a key, nil if it has none.
func (f *field) value(key string) *yaml.Node {
	for i := 0; i+1 < len(f.node.Content); i += 2 {
		if v := f.node.Content[i+1]; f.node.Content[i].Value == key {
			return v
		}
	}
	return nil
}

// child is the mapping or list of a key.
func (f *field) child(key string, kind yaml.Kind) (*field, error) {
	c := &field{path: f.to(key), node: f.value(key), attached: true, in: f, key: key}
	switch {
	case c.node == nil:
		c.node, c.attached = &yaml.Node{Kind: kind}, false
	case c.node.Kind == yaml.ScalarNode && c.node.Tag == "!!null":
		c.node.Kind, c.node.Tag, c.node.Value = kind, "", ""
	}
	return c, c.is(kind)
}

// text is the scalar of a key, empty if it has none.
func (f *field) text(key string) (string, error) {
	v := f.value(key)
	switch {
	case v == nil || v.Tag == "!!null":
		return "", nil
	case v.Kind != yaml.ScalarNode:
		return "", fmt.Errorf("%s: is not a single value", f.to(key))
	}
	return v.Value, nil
}

// set gives a key a scalar.
func (f *field) set(key, tag, value string) {
	f.attach()
	if v := f.value(key); v != nil {
		v.Kind, v.Tag, v.Value, v.Style = yaml.ScalarNode, tag, value, 0
		return
	}
	f.node.Content = append(f.node.Content, scalar("!!str", key), scalar(tag, value))
}

func (f *field) item(i int) *field {
	return &field{node: f.node.Content[i], path: fmt.Sprintf("%s[%d]", f.path, i), attached: true, in: f}
}

// find is the index of the item of a list that has the name, -1 if none has it.
func (f *field) find(name string) (int, error) {
	at := -1
	for i := range f.node.Content {
		item := f.item(i)
		if err := item.is(yaml.MappingNode); err != nil {
			return at, err
		}
		found, err := item.text("name")
		if err != nil || found == "" {
			return at, cmp.Or(err, fmt.Errorf("%s: is empty", item.to("name")))
		}
		if found == name && at < 0 {
			at = i
		}
	}
	return at, nil
}

func (f *field) insert(at int, item *yaml.Node) {
	f.attach()
	f.node.Content = slices.Insert(f.node.Content, at, item)
}

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// mapping of strings, from keys and values in turn.
func mapping(pairs ...string) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, text := range pairs {
		m.Content = append(m.Content, scalar("!!str", text))
	}
	return m
}
