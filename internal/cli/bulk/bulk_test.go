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

package bulk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/unitlist"
)

// run holds all units with an even number; that of u4 fails.
func run(t *testing.T, n int, answer string, yes, dry bool) (held []string, out, errs string, err error) {
	t.Helper()
	from := func(_ context.Context, _ *unitlist.Query, yield func([]v1alpha1.QueueUnit, bool) error) error {
		for i := range n {
			u := v1alpha1.QueueUnit{}
			u.Namespace, u.Name, u.Generation = "red", fmt.Sprint("u", i), int64(i)
			if err := yield([]v1alpha1.QueueUnit{u}, i < n); err != nil {
				return err
			}
		}
		return nil
	}
	var o, e bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(answer), Out: &o, ErrOut: &e}
	err = (&Flags{yes: yes}).Run(t.Context(), streams, time.Unix(0, 0), from, &unitlist.Query{}, &Change{
		Verb: "hold", Wants: func(u *v1alpha1.QueueUnit) bool { return u.Generation%2 == 0 },
		Do: func(_ context.Context, u *v1alpha1.QueueUnit) error {
			if u.Name == "u4" {
				return errors.New("not possible")
			}
			held = append(held, u.Name)
			return nil
		},
	}, dry)
	return held, o.String(), e.String(), err
}

func TestRun(t *testing.T) {
	held, out, _, err := run(t, 3, "yes\n", false, false)
	require.NoError(t, err)
	require.Equal(t, []string{"u0", "u2"}, held)
	require.Contains(t, out, "red         queueunit/u2")
	require.NotContains(t, out, "queueunit/u1")
	require.Contains(t, out, "To hold these 2 jobs, type yes (or use --yes): ")

	for _, answer := range []string{"", "y\n", "no\n"} {
		held, _, _, err = run(t, 3, answer, false, false)
		require.ErrorIs(t, err, errNotConfirmed)
		require.Empty(t, held)
	}
	held, out, errs, err := run(t, 7, "", true, false)
	require.ErrorContains(t, err, "1 of 4 jobs were not changed")
	require.Equal(t, []string{"u0", "u2", "u6"}, held)
	require.Equal(t, "queueunit/u4 in namespace red: not possible\n", errs)
	require.Empty(t, out)
	held, _, _, err = run(t, 3, "", false, true)
	require.NoError(t, err, "a dry run does not ask")
	require.Len(t, held, 2)
	held, _, _, err = run(t, 2*most+1, "", true, false)
	require.ErrorIs(t, err, errTooMany)
	require.Empty(t, held)
	_, _, errs, err = run(t, 0, "", false, false)
	require.NoError(t, err)
	require.Equal(t, "No job that matches is one to hold.\n", errs)
}

func TestNamed(t *testing.T) {
	named, err := (&Flags{}).Named([]string{"train"})
	require.NoError(t, err)
	require.True(t, named)
	selected := &Flags{Flags: unitlist.Flags{Selector: "team=a"}}
	named, err = selected.Named(nil)
	require.NoError(t, err)
	require.False(t, named)
	_, err = selected.Named([]string{"train"})
	require.ErrorIs(t, err, errBoth)
	_, err = (&Flags{}).Named(nil)
	require.ErrorIs(t, err, errNoSelection)
}
