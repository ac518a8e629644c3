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

// Package schedulerconfig adds the plugin JobQueue to an existing KubeSchedulerConfiguration.
package schedulerconfig

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

const (
	plugin = "JobQueue"
	// quotas is the plugin whose quotas the queue reserves.
	quotas = "ElasticQuota"
	// stockSort orders pods as JobQueue does, and is replaced.
	stockSort = "PrioritySort"
	// writer writes what JobQueue says of a pod before the pod is bound.
	writer = "DefaultPreBind"

	apiVersion = "kubescheduler.config.k8s.io/v1"
	kind       = "KubeSchedulerConfiguration"
)

// Merge adds to each profile of a configuration what the plugin JobQueue needs, and describes each change in a
// sentence. All profiles of a scheduler order pods with one plugin, so none can do without it. Arguments, connection
// settings and profiling that are set already stay, and so do all other fields and comments. A configuration that lacks
// nothing is returned as it is. An error names the field that Merge does not understand, or says that no profile is of
// the scheduler.
func Merge(in []byte, scheduler string) (out []byte, changes []string, err error) {
	document, err := parse(in)
	if err != nil {
		return nil, nil, err
	}
	m := merger{}
	if err := m.merge(document.Content[0], scheduler); err != nil {
		return nil, nil, err
	}
	if len(m.changes) == 0 {
		return in, nil, nil
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoderWithOptions(&text, &yaml.EncoderOptions{
		SeqIndent: yaml.SequenceIndentStyle(yaml.DeriveSeqIndentStyle(string(in))),
	})
	if err := errors.Join(encoder.Encode(document), encoder.Close()); err != nil {
		return nil, nil, err
	}
	return text.Bytes(), m.changes, nil
}

func parse(in []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(in))
	var document, next yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("the configuration is empty")
	case err != nil:
		return nil, err
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) || len(document.Content) != 1 {
		return nil, errors.New("the configuration has more than one document")
	}
	return &document, nil
}

// merger collects what was changed.
type merger struct{ changes []string }

func (m *merger) changed(format string, args ...any) {
	m.changes = append(m.changes, fmt.Sprintf(format, args...))
}

func (m *merger) merge(node *yaml.Node, scheduler string) error {
	root := &field{node: node, attached: true}
	if err := root.is(yaml.MappingNode); err != nil {
		return err
	}
	for _, want := range [][2]string{{"kind", kind}, {"apiVersion", apiVersion}} {
		if found, err := root.text(want[0]); err != nil || found != want[1] {
			return cmp.Or(err, fmt.Errorf("%s: is %q, want %s", want[0], found, want[1]))
		}
	}
	profiles, err := profilesOf(root, scheduler)
	if err != nil {
		return err
	}
	if err := m.elections(root); err != nil {
		return err
	}
	if err := m.defaults(root); err != nil {
		return err
	}
	if err := m.arguments(profiles); err != nil {
		return err
	}
	for _, profile := range profiles {
		if err := m.plugins(profile); err != nil {
			return err
		}
	}
	return nil
}

// profilesOf are all profiles, if one of them is of the scheduler.
func profilesOf(root *field, scheduler string) (profiles []*field, err error) {
	list, err := root.child("profiles", yaml.SequenceNode)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list.node.Content {
		profile := list.item(i)
		if err := profile.is(yaml.MappingNode); err != nil {
			return nil, err
		}
		name, err := profile.text("schedulerName")
		if err != nil {
			return nil, err
		}
		profiles, names = append(profiles, profile), append(names, cmp.Or(name, "default-scheduler"))
	}
	if !slices.Contains(names, scheduler) {
		return nil, fmt.Errorf("%s: none has the schedulerName %q; found: %s", list.path, scheduler,
			cmp.Or(strings.Join(names, ", "), "none"))
	}
	return profiles, nil
}

// lastWrite is how long a write of a leader may take: engine.DefaultWriteTimeout.
const lastWrite = 4 * time.Second

// elections sets the three times of leader election, unless with the present ones the last write of a leader ends
// before the next one leads.
func (m *merger) elections(root *field) error {
	election, err := root.child("leaderElection", yaml.MappingNode)
	if err != nil {
		return err
	}
	if elect, err := election.text("leaderElect"); err != nil || elect == "false" {
		return err
	}
	// The defaults of Kubernetes, and those of scheduler-config.yaml.
	times := []struct {
		key             string
		found, required time.Duration
	}{
		{"leaseDuration", 15 * time.Second, 20 * time.Second},
		{"renewDeadline", 10 * time.Second, 6 * time.Second},
		{"retryPeriod", 2 * time.Second, 2 * time.Second},
	}
	for i := range times {
		t := &times[i]
		text, err := election.text(t.key)
		if err != nil {
			return err
		}
		if text == "" {
			continue
		}
		if t.found, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%s.%s: %q is no duration", election.path, t.key, text)
		}
	}
	if 2*times[1].found+times[2].found+lastWrite < times[0].found {
		return nil
	}
	var all []string
	for _, t := range times {
		election.set(t.key, "!!str", t.required.String())
		all = append(all, t.key+" is "+t.required.String())
	}
	m.changed("%s: %s. The last write of a leader ends before another one leads.", election.path, strings.Join(all, ", "))
	return nil
}

// defaults sets what has another default in kube-scheduler.
func (m *merger) defaults(root *field) error {
	connection, err := root.child("clientConnection", yaml.MappingNode)
	if err != nil {
		return err
	}
	for _, d := range []struct {
		in              *field
		key, tag, value string
		why             string
	}{
		{connection, "qps", "!!int", "500", "Pods of admitted jobs arrive in bursts."},
		{connection, "burst", "!!int", "1000", "Pods of admitted jobs arrive in bursts."},
		{root, "enableProfiling", "!!bool", "false", "Profiles are not for everybody who reaches the port."},
		{root, "enableContentionProfiling", "!!bool", "false", "Profiles are not for everybody who reaches the port."},
	} {
		found, err := d.in.text(d.key)
		if err != nil {
			return err
		}
		if found == "" {
			d.in.set(d.key, d.tag, d.value)
			m.changed("%s: is %s. %s", d.in.to(d.key), d.value, d.why)
		}
	}
	return nil
}

// arguments are the same in all profiles, since those of the plugin that orders pods have to be.
func (m *merger) arguments(profiles []*field) error {
	var lacking []*field
	arguments, from := mapping("apiVersion", apiVersion, "kind", plugin+"Args"), "its default arguments"
	for _, profile := range profiles {
		configs, err := profile.child("pluginConfig", yaml.SequenceNode)
		if err != nil {
			return err
		}
		switch at, err := configs.find(plugin); {
		case err != nil:
			return err
		case at < 0:
			lacking = append(lacking, configs)
		case from == "its default arguments":
			if arguments = configs.item(at).value("args"); arguments != nil && arguments.Kind == yaml.AliasNode {
				arguments = arguments.Alias
			}
			from = "the arguments of " + profile.path
		}
	}
	for _, configs := range lacking {
		entry := mapping("name", plugin)
		if arguments != nil {
			entry.Content = append(entry.Content, scalar("!!str", "args"), yaml.CopyYNode(arguments))
		}
		configs.insert(len(configs.node.Content), entry)
		m.changed("%s: %s has %s.", configs.path, plugin, from)
	}
	return nil
}

// plugins enables the plugin at the extension points of scheduler-config.yaml.
func (m *merger) plugins(profile *field) error {
	plugins, err := profile.child("plugins", yaml.MappingNode)
	if err != nil {
		return err
	}
	everywhere, nowhere, err := lists(plugins, "multiPoint")
	if err != nil {
		return err
	}
	if err := m.sort(plugins); err != nil {
		return err
	}
	for _, p := range []struct {
		point string
		first bool
		why   string
	}{
		{"preEnqueue", false, "It gates pods of jobs that are not admitted."},
		{"preFilter", true, "It is the first, and refuses pods of jobs that are not admitted."},
		{"reserve", false, "It is the last, after " + quotas + " has counted the pod."},
		{"preBind", true, "It sets the time limit of a pod before DefaultPreBind writes the pod."},
	} {
		enabled, disabled, err := lists(plugins, p.point)
		if err != nil {
			return err
		}
		switch p.point {
		case "preBind":
			err = m.write(enabled, everywhere, disabled, nowhere)
		case "reserve":
			err = m.count(enabled, everywhere)
		}
		if err != nil {
			return err
		}
		added, err := enable(enabled, p.point, p.first)
		if err != nil {
			return err
		}
		if added {
			m.changed("%s: %s is enabled. %s", enabled.path, plugin, p.why)
		}
	}
	return nil
}

// enable puts the plugin where it belongs in a list; false if it is there.
func enable(enabled *field, point string, first bool) (bool, error) {
	at, err := enabled.find(plugin)
	if err == nil && point == "reserve" {
		at, err = afterQuotas(enabled, at)
	}
	if err != nil || at == 0 || at > 0 && !first {
		return false, err
	}
	if at > 0 {
		enabled.node.Content = slices.Delete(enabled.node.Content, at, at+1)
	}
	to := len(enabled.node.Content)
	if first {
		to = 0
	}
	enabled.insert(to, mapping("name", plugin))
	return true, nil
}

// afterQuotas returns the index of the plugin, and removes the plugin if its quotas are only reserved after it.
func afterQuotas(enabled *field, at int) (int, error) {
	quota, err := enabled.find(quotas)
	if err != nil {
		return at, err
	}
	if quota < 0 {
		return at, fmt.Errorf("%s: lacks %s, whose quotas the queue reserves", enabled.path, quotas)
	}
	if at < 0 || at > quota {
		return at, nil
	}
	enabled.node.Content = slices.Delete(enabled.node.Content, at, at+1)
	return -1, nil
}

// write keeps the writer enabled, which somebody may have disabled together with all others, here or everywhere.
func (m *merger) write(enabled, everywhere, disabled, nowhere *field) error {
	here, err := anyOf(disabled, "*", writer)
	if err != nil {
		return err
	}
	off, err := anyOf(nowhere, "*", writer)
	if err != nil {
		return err
	}
	multi, err := anyOf(everywhere, writer)
	if err != nil {
		return err
	}
	on, err := anyOf(enabled, writer)
	if err != nil || on || !here && (multi || !off) {
		return err
	}
	enabled.insert(len(enabled.node.Content), mapping("name", writer))
	m.changed("%s: %s is enabled. It writes what %s says of a pod.", enabled.path, writer, plugin)
	return nil
}

// count enables the plugin of the quotas at an extension point if the configuration enables it at all points. Plugins
// that an extension point names run before those that are enabled everywhere.
func (m *merger) count(enabled, everywhere *field) error {
	multi, err := anyOf(everywhere, quotas)
	if err != nil {
		return err
	}
	on, err := anyOf(enabled, quotas)
	if err != nil || on || !multi {
		return err
	}
	enabled.insert(len(enabled.node.Content), mapping("name", quotas))
	m.changed("%s: %s is enabled, as by multiPoint. %s comes after it.", enabled.path, quotas, plugin)
	return nil
}

// anyOf says that a list has a plugin of one of these names.
func anyOf(list *field, names ...string) (bool, error) {
	for _, name := range names {
		if at, err := list.find(name); err != nil || at >= 0 {
			return err == nil, err
		}
	}
	return false, nil
}

// sort has the plugin order pods, which one plugin alone does.
func (m *merger) sort(plugins *field) error {
	enabled, disabled, err := lists(plugins, "queueSort")
	if err != nil {
		return err
	}
	at, err := enabled.find(plugin)
	if err != nil {
		return err
	}
	stock, err := enabled.find(stockSort)
	if err != nil {
		return err
	}
	switch n := len(enabled.node.Content); {
	case n == 0:
		enabled.insert(0, mapping("name", plugin))
	case n == 1 && stock == 0:
		enabled.item(0).set("name", "!!str", plugin)
	case n == 1 && at == 0:
	default:
		return fmt.Errorf("%s: only %s can be replaced by %s, and one plugin alone orders pods", enabled.path, stockSort,
			plugin)
	}
	if at < 0 {
		m.changed("%s: %s is enabled in place of %s, and orders pods in the same way.", enabled.path, plugin, stockSort)
	}
	all, err := disabled.find("*")
	if err != nil {
		return err
	}
	if stock, err = disabled.find(stockSort); err != nil || all >= 0 || stock >= 0 {
		return err
	}
	disabled.insert(0, mapping("name", "*"))
	m.changed("%s: the default %s is disabled.", disabled.path, stockSort)
	return nil
}

// lists are the plugins that are enabled and disabled at an extension point.
func lists(plugins *field, point string) (enabled, disabled *field, err error) {
	at, err := plugins.child(point, yaml.MappingNode)
	if err != nil {
		return enabled, disabled, err
	}
	if enabled, err = at.child("enabled", yaml.SequenceNode); err != nil {
		return enabled, disabled, err
	}
	if disabled, err = at.child("disabled", yaml.SequenceNode); err != nil {
		return enabled, disabled, err
	}
	found, err := disabled.find(plugin)
	if err == nil && found >= 0 {
		err = fmt.Errorf("%s: disables %s", disabled.path, plugin)
	}
	return enabled, disabled, err
}
