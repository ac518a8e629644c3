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

package sight

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"
)

// reviewer lets users list units where their only group says.
type reviewer struct{ asked atomic.Int32 }

func (r *reviewer) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.asked.Add(1)
	if a.GetVerb() == "list" && a.GetResource() == "units" && a.GetUser().GetGroups()[0] == a.GetNamespace() {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func person(name, group string) user.Info {
	return &user.DefaultInfo{Name: name, Groups: []string{group}}
}

func TestAUserSeesWhereItMayList(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	r := &reviewer{}
	s := New(r, clock)
	for range 2 {
		visible, err := s.Among(t.Context(), person("rose", "red"), []string{"blue", "green", "red"})
		require.NoError(t, err)
		require.Equal(t, []string{"red"}, visible)
	}
	require.EqualValues(t, 3, r.asked.Load(), "answers are kept")
	everywhere, err := s.Everywhere(t.Context(), person("rose", "red"))
	require.NoError(t, err)
	require.False(t, everywhere)
	visible, err := s.Among(t.Context(), person("rose", "blue"), []string{"blue", "green", "red"})
	require.NoError(t, err)
	require.Equal(t, []string{"blue"}, visible, "rights depend on groups")

	clock.Step(keptFor + time.Second)
	_, err = s.Among(t.Context(), person("rose", "red"), []string{"red"})
	require.NoError(t, err)
	require.EqualValues(t, 8, r.asked.Load(), "a right that was taken away ends")
}

// A tenant with many service accounts has the bound of one, and leaves reviews to others.
func TestReviewsOfATenantAreBounded(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	r := &reviewer{}
	s := New(r, clock)
	refused := 0
	for i := range 2*burstOfOne + 1 {
		account := person(fmt.Sprintf("system:serviceaccount:red:%d", i), "red")
		if _, err := s.Among(t.Context(), account, []string{"red"}); err != nil {
			require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
			refused++
		}
	}
	require.Equal(t, burstOfOne+1, refused)
	visible, err := s.Among(t.Context(), person("lead", "red"), []string{"red"})
	require.NoError(t, err)
	require.Equal(t, []string{"red"}, visible)
	clock.Step(time.Second)
	_, err = s.Everywhere(t.Context(), person("system:serviceaccount:red:new", "red"))
	require.NoError(t, err)
}

func TestTenantsThatAskNoLongerAreForgotten(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	s := New(&reviewer{}, clock)
	for i := range 2 * manyTenants {
		clock.Step(time.Second)
		_, err := s.Everywhere(t.Context(), person(fmt.Sprint(i), "red"))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(s.tenants), manyTenants)
}
