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
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a configuration, and of the depth of its YAML.
const (
	maxConfigBytes = 1 << 20
	maxConfigJobs  = 1000
)

// Config chooses the driver of a platform, and says for each type of its jobs how they are queued.
type Config struct {
	Driver Driver
	// Queue and User are templates of Job.Queue and Job.User. They name fields of Submitter, as in
	// "root.{{.Organization}}.{{.Type}}".
	Queue, User string
	// Types by their name. A type that is not there has no gang, and may be preempted.
	Types map[string]Type
}

// Type is how jobs of one type are queued.
type Type struct {
	Gang           *Gang
	NonPreemptible bool
}

// Submitter has the values for templates. A value with a character other than letters, digits, "-" and "_" is refused
// if the queue names it. With a dot, a user would name the queue of another organization.
type Submitter struct {
	Organization, Project, Domain, User, Type string
	Groups                                    []string
}

// fields by their names in a template.
func (s *Submitter) fields() map[string]string {
	return map[string]string{
		"Organization": s.Organization, "Project": s.Project, "Domain": s.Domain, "User": s.User, "Type": s.Type,
	}
}

// Job is what the configuration says of a job of the submitter.
func (c *Config) Job(s *Submitter) (Job, error) {
	queue, err := expand(c.Queue, s, queuePart)
	if err != nil {
		return Job{}, fmt.Errorf("queue: %w", err)
	}
	user, err := expand(c.User, s, userPart)
	if err != nil {
		return Job{}, fmt.Errorf("user: %w", err)
	}
	t := c.Types[s.Type]
	return Job{
		Queue: queue, User: user, Groups: slices.Clone(s.Groups), Gang: t.Gang, NonPreemptible: t.NonPreemptible,
	}, nil
}

var (
	placeholder = regexp.MustCompile(`\{\{ *\.([A-Za-z]+) *\}\}`)
	queuePart   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,63}$`)
	userPart    = regexp.MustCompile(`^[a-zA-Z0-9:#/_.@-]{1,256}$`)
)

// expand the fields in a template. The first problem is the error.
func expand(template string, s *Submitter, allowed *regexp.Regexp) (out string, err error) {
	fields := s.fields()
	out = placeholder.ReplaceAllStringFunc(template, func(text string) string {
		name := placeholder.FindStringSubmatch(text)[1]
		if value := fields[name]; allowed.MatchString(value) {
			return value
		}
		if err == nil {
			err = fmt.Errorf("%w: %s is %.100q", ErrInvalid, name, fields[name])
		}
		return ""
	})
	return out, err
}

// ParseConfig reads YAML. It returns all mistakes, each with its field and its line:
//
//	queueconfig:
//	  scheduler: koord
//	  queue: "{{.Organization}}-{{.Type}}"
//	  jobs:
//	  - type: ray
//	    gangscheduling: placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard
//	    allow-preemption: false
func ParseConfig(text []byte) (*Config, error) {
	if len(text) > maxConfigBytes {
		return nil, fmt.Errorf("%w: %d bytes, want at most %d", ErrInvalid, len(text), maxConfigBytes)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	r := &configReader{}
	c := &Config{Types: map[string]Type{}}
	if len(document.Content) == 0 {
		return nil, fmt.Errorf("%w: the text is empty", ErrInvalid)
	}
	r.object("", document.Content[0], map[string]func(at string, n *yaml.Node){
		"queueconfig": func(at string, n *yaml.Node) { r.queueConfig(at, n, c) },
	}, "queueconfig")
	if err := errors.Join(r.problems...); err != nil {
		return nil, err
	}
	return c, nil
}

// configReader notes the mistakes.
type configReader struct{ problems []error }

func (r *configReader) wrong(at string, n *yaml.Node, err error) {
	r.problems = append(r.problems, fmt.Errorf("line %d: %s: %w", n.Line, strings.TrimPrefix(at, "."), err))
}

// object reads the fields. Others, and those that are there twice, are mistakes.
func (r *configReader) object(
	at string, n *yaml.Node, fields map[string]func(at string, n *yaml.Node), needed ...string,
) {
	if n.Kind != yaml.MappingNode {
		r.wrong(at+".", n, fmt.Errorf("%w: want an object", ErrInvalid))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		read, known := fields[key]
		switch path := fmt.Sprintf("%s.%.40s", at, key); {
		case !known:
			r.wrong(path, n.Content[i], fmt.Errorf("%w: no such field: want one of %s", ErrInvalid,
				strings.Join(slices.Sorted(maps.Keys(fields)), ", ")))
		case seen[key]:
			r.wrong(path, n.Content[i], fmt.Errorf("%w: the field is there twice", ErrInvalid))
		default:
			read(path, n.Content[i+1])
		}
		seen[key] = true
	}
	for _, key := range needed {
		if !seen[key] {
			r.wrong(at+"."+key, n, fmt.Errorf("%w: the field is needed", ErrInvalid))
		}
	}
}

// text reads a scalar.
func (r *configReader) text(at string, n *yaml.Node, into *string) {
	if n.Kind != yaml.ScalarNode {
		r.wrong(at, n, fmt.Errorf("%w: want text", ErrInvalid))
		return
	}
	*into = n.Value
}

func (r *configReader) queueConfig(at string, n *yaml.Node, c *Config) {
	var o Options
	template := func(into *string, allowed *regexp.Regexp) func(string, *yaml.Node) {
		return func(at string, n *yaml.Node) {
			r.text(at, n, into)
			if err := checkTemplate(*into, allowed); err != nil {
				r.wrong(at, n, err)
			}
		}
	}
	scheduler, queue, jobs := n, n, n
	r.object(at, n, map[string]func(at string, n *yaml.Node){
		"scheduler":      func(at string, n *yaml.Node) { r.text(at, n, &o.Driver); scheduler = n },
		"scheduler-name": func(at string, n *yaml.Node) { r.text(at, n, &o.SchedulerName) },
		"kubernetes-api": func(at string, n *yaml.Node) { r.text(at, n, &o.KubernetesAPI) },
		"queue":          func(at string, n *yaml.Node) { template(&c.Queue, queuePart)(at, n); queue = n },
		"user":           template(&c.User, userPart),
		"jobs":           func(_ string, n *yaml.Node) { jobs = n },
	}, "scheduler")
	if o.Driver == "" {
		return
	}
	var err error
	if c.Driver, err = New(o); err != nil {
		r.wrong(at+".scheduler", scheduler, err)
		return
	}
	if c.Queue != "" && !c.Driver.queues {
		r.wrong(at+".queue", queue, fmt.Errorf("%w by %s", ErrUnsupported, o.Driver))
	}
	if c.Queue == "" && c.Driver.needsQueue {
		r.wrong(at+".queue", n, fmt.Errorf("%w: %s needs it", ErrInvalid, o.Driver))
	}
	if jobs != n {
		r.jobs(at+".jobs", jobs, c)
	}
}

// checkTemplate wants fields that exist, and braces around them alone.
func checkTemplate(template string, allowed *regexp.Regexp) error {
	const any = "x"
	for _, match := range placeholder.FindAllStringSubmatch(template, -1) {
		if _, known := (&Submitter{}).fields()[match[1]]; !known {
			return fmt.Errorf("%w: no such field: %s", ErrInvalid, match[0])
		}
	}
	rest := placeholder.ReplaceAllString(template, any)
	for _, part := range strings.Split(rest, ".") {
		if !allowed.MatchString(part) {
			return fmt.Errorf("%w: part %.100q", ErrInvalid, part)
		}
	}
	return nil
}

func (r *configReader) jobs(at string, n *yaml.Node, c *Config) {
	if n.Kind != yaml.SequenceNode || len(n.Content) > maxConfigJobs {
		r.wrong(at, n, fmt.Errorf("%w: want a list of at most %d", ErrInvalid, maxConfigJobs))
		return
	}
	for i, item := range n.Content {
		r.job(fmt.Sprintf("%s[%d]", at, i), item, c)
	}
}

func (r *configReader) job(at string, n *yaml.Node, c *Config) {
	var name string
	var t Type
	r.object(at, n, map[string]func(at string, n *yaml.Node){
		"type": func(at string, n *yaml.Node) {
			r.text(at, n, &name)
			if _, twice := c.Types[name]; twice || !queuePart.MatchString(name) {
				r.wrong(at, n, fmt.Errorf("%w: %.40q is no name of a type, or is there twice", ErrInvalid, name))
			}
		},
		"gangscheduling": func(at string, n *yaml.Node) {
			var text string
			r.text(at, n, &text)
			var err error
			if t.Gang, err = ParseGang(text); err != nil {
				r.wrong(at, n, err)
			}
		},
		"allow-preemption": func(at string, n *yaml.Node) {
			var allowed bool
			if err := n.Decode(&allowed); err != nil || n.Tag != "!!bool" {
				r.wrong(at, n, fmt.Errorf("%w: want true or false", ErrInvalid))
				return
			}
			t.NonPreemptible = !allowed
			if t.NonPreemptible && !c.Driver.nonPreemptible {
				r.wrong(at, n, fmt.Errorf("false: %w by %s", ErrUnsupported, c.Driver.Driver))
			}
		},
	}, "type")
	c.Types[name] = t
}
