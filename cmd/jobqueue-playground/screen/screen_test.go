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

package screen

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCutCountsNoEscapes(t *testing.T) {
	require.Equal(t, "\x1b[1mab\x1b[0m", cut("\x1b[1mabcd\x1b[0m", 2))
	require.Equal(t, "abcd", cut("abcd", 10))
}

func TestABlockStaysInPlaceOnATerminalOnly(t *testing.T) {
	var out bytes.Buffer
	d := &Block{screen: Screen{Out: &out}, width: func() int { return 5 }}
	d.Show([]string{"a", "longer than the width"})
	d.Show([]string{"b"})
	require.Equal(t, "a\nlonger than the width\n\nb\n\n", out.String())

	out.Reset()
	d = &Block{screen: Screen{Out: &out, Terminal: true}, width: func() int { return 5 }}
	d.Show([]string{"a", "longer than the width"})
	d.Show([]string{"b"})
	require.Equal(t, "\x1b[Ka\n\x1b[Klonge\n\x1b[J\x1b[2A\x1b[Kb\n\x1b[J", out.String())
}
