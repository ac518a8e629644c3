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

package visibility

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/limiter"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/sight"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/unitselector"
)

const (
	// mostLooks of a request at units.
	mostLooks = 5000
	// mostReviewed is the number of namespaces of which one request asks whether the user may list units there.
	// reviewedAtOnce of them are asked before units are looked for.
	mostReviewed   = 1000
	reviewedAtOnce = 50
)

// unitLists lists units by namespace and name. Without a namespace in the request it lists those of all namespaces. If
// sees is there, it lists those of the namespaces in which the user may list units. A page may be short, or empty, and
// have others behind it.
type unitLists struct {
	reader *Reader
	sees   *sight.Sight
}

// part of a list of units. looks are those that are left.
type part struct {
	rows   []questions.UnitRow
	resume string
	looks  int
}

func (l *unitLists) list(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	search, err := unitselector.Read(o.LabelSelector, o.FieldSelector)
	if err != nil {
		return nil, err
	}
	if search.Limit, err = sizeOf(o.Limit); err != nil {
		return nil, err
	}
	search.Looks, search.Behind = mostLooks, o.Continue
	namespace := request.NamespaceValue(ctx)
	if namespace != "" {
		search.Namespaces = []string{namespace}
		if o.Continue != "" {
			search.Behind = namespace + "/" + o.Continue
		}
	} else if o.Continue != "" && !strings.Contains(o.Continue, "/") {
		return nil, apierrors.NewBadRequest("continue: not a token of the page before")
	}
	leave, err := l.reader.limiter.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, limiter.Timeout)
	defer cancel()
	a, err := l.search(ctx, search)
	if err != nil {
		return nil, err
	}
	if namespace != "" {
		_, a.value.resume, _ = strings.Cut(a.value.resume, "/")
	}
	return unitList(a.at, a.leads, a.value.rows, metav1.ListMeta{Continue: a.value.resume}), nil
}

// search asks once, or as often as it takes to know what the user may see.
func (l *unitLists) search(ctx context.Context, s *unitbook.Search) (answer[part], error) {
	u, known := request.UserFrom(ctx)
	if l.sees == nil || !known {
		return l.ask(ctx, *s)
	}
	everywhere, err := l.sees.Everywhere(ctx, u)
	switch {
	case err != nil:
		return answer[part]{}, err
	case everywhere:
		return l.ask(ctx, *s)
	}
	return l.visible(ctx, u, *s)
}

// ask takes a copy of the search, which may still run when nobody waits for it.
func (l *unitLists) ask(ctx context.Context, s unitbook.Search) (answer[part], error) {
	return answered(ctx, l.reader.source, func(v questions.View) (part, bool) {
		rows, resume, looks := v.Search(&s)
		return part{rows, resume, looks}, true
	})
}

// visible goes through the namespaces with units, some at a time. It ends early if too many reviews were made for the
// user.
func (l *unitLists) visible(ctx context.Context, u user.Info, s unitbook.Search) (page answer[part], err error) {
	begin := s.Behind
	var rows []questions.UnitRow
	for reviewed := 0; ; {
		names, err := l.namespaces(ctx, s)
		if err != nil {
			return page, err
		}
		visible, err := l.sees.Among(ctx, u, names.value.list)
		if apierrors.IsTooManyRequests(err) && s.Behind != begin {
			return page, nil
		}
		if err != nil {
			return page, err
		}
		page = answer[part]{at: names.at, leads: names.leads, value: part{resume: names.value.resume, looks: s.Looks}}
		if len(visible) > 0 {
			found := s
			found.Namespaces = visible
			if page, err = l.ask(ctx, found); err != nil {
				return page, err
			}
		}
		full := page.value.resume != "" && len(visible) > 0
		if !full {
			page.value.resume = names.value.resume
		}
		rows = append(rows, page.value.rows...)
		s.Behind, s.Limit, s.Looks = page.value.resume, s.Limit-len(page.value.rows), page.value.looks
		page.value.rows = rows
		reviewed += len(names.value.list)
		if full || s.Behind == "" || s.Limit <= 0 || s.Looks <= 0 || reviewed >= mostReviewed {
			return page, nil
		}
	}
}

// someNames are namespaces in which a search may find units, and the key behind which others are.
type someNames struct {
	list   []string
	resume string
}

func (l *unitLists) namespaces(ctx context.Context, s unitbook.Search) (answer[someNames], error) {
	return answered(ctx, l.reader.source, func(v questions.View) (someNames, bool) {
		list, resume := v.NamespacesOf(&s, reviewedAtOnce)
		return someNames{list, resume}, true
	})
}
