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

package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
)

func TestLabel(t *testing.T) {
	const file = "../../pkg/submit/testdata/jobs/rayjob.yaml"
	run := func(args ...string) (string, error) {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		cmd := Command(streams)
		cmd.SetArgs(append([]string{"label", "-f", file}, args...))
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	out, err := run("--driver=volcano", "--queue=team", "--gang=")
	require.NoError(t, err)
	require.Regexp(t, `(?s)^---\n.*kind: PodGroup.*\n---\n.*kind: RayJob.*volcano.sh/queue-name: team`, out)
	_, err = run("--driver=slurm")
	require.ErrorIs(t, err, submit.ErrInvalid)
	_, err = run("--driver=kueue", "--queue=team", "--non-preemptible")
	require.ErrorIs(t, err, submit.ErrUnsupported)
	_, err = run("--gang=style=Hard")
	require.ErrorIs(t, err, submit.ErrInvalid)
}
