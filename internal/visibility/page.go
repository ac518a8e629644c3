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
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// defaultPage and maxPage bound what one answer lists.
const (
	defaultPage = 100
	maxPage     = 500
)

// namesPage is a part of a list that is ordered by name: up to limit items behind a name.
type namesPage struct {
	behind string
	limit  int
}

func pageOfNames(limit int64, resume string) (namesPage, error) {
	n, err := sizeOf(limit)
	return namesPage{behind: resume, limit: n}, err
}

// meta of a list whose last item has this name, with so many behind it.
func (p namesPage) meta(last string, rest int) metav1.ListMeta {
	return metaOf(last, rest)
}

// placesPage is a part of a list that is ordered otherwise: up to limit items after the first skip ones.
type placesPage struct{ skip, limit int }

// maxSkip is far behind the end of any list.
const maxSkip = 1 << 30

func pageOfPlaces(o *v1alpha1.PageOptions) (placesPage, error) {
	n, err := sizeOf(o.Limit)
	if err != nil {
		return placesPage{}, err
	}
	skip := o.Offset
	if o.Continue != "" {
		if skip, err = strconv.ParseInt(o.Continue, 10, 32); err != nil {
			return placesPage{}, apierrors.NewBadRequest("continue: this is not what the page before said")
		}
	}
	if skip < 0 {
		return placesPage{}, apierrors.NewBadRequest("offset: must not be negative")
	}
	return placesPage{skip: int(min(skip, maxSkip)), limit: n}, nil
}

// meta of a list of so many items out of all.
func (p placesPage) meta(listed, all int) metav1.ListMeta {
	return metaOf(strconv.Itoa(p.skip+listed), max(all-p.skip-listed, 0))
}

func metaOf(resume string, rest int) metav1.ListMeta {
	if rest <= 0 {
		return metav1.ListMeta{}
	}
	remaining := int64(rest)
	return metav1.ListMeta{Continue: resume, RemainingItemCount: &remaining}
}

// sizeOf is what is listed where so many were asked for.
func sizeOf(limit int64) (int, error) {
	switch {
	case limit < 0:
		return 0, apierrors.NewBadRequest("limit: must not be negative")
	case limit == 0:
		return defaultPage, nil
	default:
		return int(min(limit, maxPage)), nil
	}
}
