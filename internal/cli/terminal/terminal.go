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

// Package terminal shows a text again when it changes.
package terminal

import (
	"bytes"
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/wait"
)

// watchInterval is the time between two readings of --watch.
const watchInterval = 2 * time.Second

// Repeat writes a text once, or, with watch, each time that it differs until the context ends. On a terminal the new
// text takes the place of the former.
func Repeat(ctx context.Context, out io.Writer, watch bool, write func(io.Writer) error) error {
	if !watch {
		return write(out)
	}
	clear := ""
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		clear = "\x1b[H\x1b[2J"
	}
	var last []byte
	err := wait.PollUntilContextCancel(ctx, watchInterval, true, func(context.Context) (bool, error) {
		var text bytes.Buffer
		if err := write(&text); err != nil || bytes.Equal(text.Bytes(), last) {
			return false, err
		}
		last = bytes.Clone(text.Bytes())
		_, err := io.WriteString(out, clear+text.String())
		return false, err
	})
	if wait.Interrupted(err) {
		return nil // somebody has seen enough
	}
	return err
}
