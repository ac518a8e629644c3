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

package pages

import (
	"net/http"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
)

// mine is the parameter of a URL by which a reader says which namespace is theirs. A server of many people has no
// kubeconfig that says so.
const mine = "mine"

// within is a source whose reader chose a namespace.
type within struct {
	facts.Source
	namespace string
}

// Namespace implements facts.Source.
func (w within) Namespace() string { return w.namespace }

// choice is the namespace that the URL names; empty without a valid one.
func (s *Site) choice(r *http.Request) string {
	name := r.URL.Query().Get(mine)
	if !s.Shared || len(validation.IsDNS1123Label(name)) > 0 {
		return ""
	}
	return name
}

// Links and forms of templates. A template quotes attributes and escapes quotes of values, so no value looks like one.
var (
	ownLinks = regexp.MustCompile(` (?:href|action|hx-post)="/[^"#]*`)
	getForms = regexp.MustCompile(`<form [^>]*>`)
)

// keep has links and forms of a page name the namespace, too.
func keep(page, namespace string) string {
	if namespace == "" { // otherwise a label of DNS, which needs no escapes
		return page
	}
	pair := mine + "=" + namespace
	page = ownLinks.ReplaceAllStringFunc(page, func(link string) string {
		switch {
		case strings.Contains(link, `"/static/`):
			return link
		case strings.Contains(link, "?"):
			return link + "&amp;" + pair
		}
		return link + "?" + pair
	})
	return getForms.ReplaceAllStringFunc(page, func(form string) string {
		if strings.Contains(form, `method="post"`) || strings.Contains(form, " data-mine") {
			return form
		}
		return form + `<input type="hidden" name="` + mine + `" value="` + namespace + `">`
	})
}
