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
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// NewInsecureHandler answers anybody, in full. It is for development, where nobody else can reach the port:
//
//	GET /queues                                  all queues
//	GET /queues/NAME                             one queue
//	GET /queues/NAME/waitingunits?limit=&offset= a part of its line
//	GET /units/NAMESPACE/NAME                    one unit
//	GET /audit                                   the last audit
//
// Paths are relative; the code that mounts it strips what comes before.
func NewInsecureHandler(r *Reader) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, answer func(*http.Request) (runtime.Object, error)) {
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, req *http.Request) {
			o, err := answer(req)
			write(w, o, err)
		})
	}
	handle("/queues", func(req *http.Request) (runtime.Object, error) {
		return object(r.Queues(req.Context(), namesPage{limit: maxPage}))
	})
	handle("/queues/{name}", func(req *http.Request) (runtime.Object, error) {
		return object(r.Queue(req.Context(), req.PathValue("name")))
	})
	handle("/queues/{name}/waitingunits", func(req *http.Request) (runtime.Object, error) {
		var o v1alpha1.PageOptions
		if err := readPage(req.URL.Query(), &o); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		page, err := pageOfPlaces(&o)
		if err != nil {
			return nil, err
		}
		return object(r.Line(req.Context(), req.PathValue("name"), page))
	})
	handle("/units/{namespace}/{name}", func(req *http.Request) (runtime.Object, error) {
		return object(r.FullUnit(req.Context(), req.PathValue("namespace"), req.PathValue("name")))
	})
	handle("/audit", func(req *http.Request) (runtime.Object, error) { return object(r.Audit(req.Context())) })
	return mux
}

func write(w http.ResponseWriter, o any, err error) {
	code := http.StatusOK
	if err != nil {
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			status = apierrors.NewInternalError(err)
		}
		s := status.Status()
		code, o = int(s.Code), &s
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(o)
}
