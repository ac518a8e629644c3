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

package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// event is the part of a watch event that is read.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Status struct {
			Phase    v1alpha1.QueueUnitPhase `json:"phase"`
			Attempts int64                   `json:"attempts"`
			// Conditions are read of jobs.
			Conditions []struct {
				Type   string `json:"type"`
				Status string `json:"status"`
			} `json:"conditions"`
		} `json:"status"`
		Message string `json:"message"`
	} `json:"object"`
}

// watch follows objects, from what there is now on.
func (c *client) watch(ctx context.Context, path string, take func(*event)) error {
	version, err := c.version(ctx, path)
	if err != nil {
		return err
	}
	return c.watchFrom(ctx, path, version, take)
}

// version of what there is now.
func (c *client) version(ctx context.Context, path string) (string, error) {
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	raw, err := c.streams.Get().AbsPath(path).Param("limit", "1").DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return "", fmt.Errorf("list %s: %w", path, err)
	}
	return list.Metadata.ResourceVersion, nil
}

// watchFrom takes what comes after the version, until the context ends. A watch that ends is taken up where it was.
func (c *client) watchFrom(ctx context.Context, path, version string, take func(*event)) (err error) {
	for {
		version, err = c.stream(ctx, path, version, take)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it ended because the context did
		}
		if err != nil {
			return fmt.Errorf("watch %s: %w", path, err)
		}
	}
}

func (c *client) stream(ctx context.Context, path, version string, take func(*event)) (string, error) {
	body, err := c.streams.Get().AbsPath(path).Param("watch", "true").
		Param("resourceVersion", version).Param("allowWatchBookmarks", "true").Stream(ctx)
	if err != nil {
		return version, err
	}
	defer body.Close() //nolint:errcheck // read only
	const ahead = 1 << 20
	decoder := json.NewDecoder(bufio.NewReaderSize(body, ahead))
	for {
		var e event
		if err := decoder.Decode(&e); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return version, nil
			}
			return version, err
		}
		if e.Type == "ERROR" {
			return version, errors.New(e.Object.Message)
		}
		version = e.Object.Metadata.ResourceVersion
		if e.Type != "BOOKMARK" {
			take(&e)
		}
	}
}

// count is how many objects there are.
func (c *client) count(ctx context.Context, path string) (int, error) {
	raw, err := c.streams.Get().AbsPath(path).Param("limit", "1").DoRaw(ctx)
	if err != nil {
		return 0, err
	}
	var list struct {
		Items    []json.RawMessage `json:"items"`
		Metadata struct {
			Remaining int `json:"remainingItemCount"`
		} `json:"metadata"`
	}
	err = json.Unmarshal(raw, &list)
	return len(list.Items) + list.Metadata.Remaining, err
}

// listUnits visits all units, page by page.
func (c *client) listUnits(ctx context.Context, visit func(*event)) error {
	const page = "1000"
	for next := ""; ; {
		raw, err := c.streams.Get().AbsPath(unitsPath(unitNamespace)).Param("limit", page).Param("continue", next).DoRaw(ctx)
		if err != nil {
			return err
		}
		var list struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return err
		}
		for _, item := range list.Items {
			var e event
			if err := json.Unmarshal(item, &e.Object); err != nil {
				return err
			}
			visit(&e)
		}
		if next = list.Metadata.Continue; next == "" {
			return nil
		}
	}
}
