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

package limiter

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestUsersThatAskNoLongerAreForgotten(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	l := New(clock)
	for i := range 3 * manyUsers {
		clock.Step(time.Second)
		leave, err := l.Enter(request.WithUser(t.Context(), &user.DefaultInfo{Name: fmt.Sprint(i)}))
		require.NoError(t, err)
		leave()
	}
	require.LessOrEqual(t, len(l.users), manyUsers)
}
