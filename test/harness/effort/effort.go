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

package effort

import (
	"flag"
	"os"
	"sync"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Check is rapid.Check, with a result that Go's test cache may keep. rapid reads the number of checks and the seed from
// the environment before the tests begin. The cache notices only variables that are read later.
func Check(t rapid.TB, property func(*rapid.T)) {
	t.Helper()
	for _, name := range []string{"RAPID_CHECKS", "RAPID_SEED"} {
		os.LookupEnv(name)
	}
	rapid.Check(t, property)
}

// many checks are asked for by RAPID_CHECKS or -rapid.checks from here on.
const many = 10_000

// Wide says whether many short histories are asked for instead of some long ones.
var Wide = sync.OnceValue(func() bool {
	f := flag.Lookup("rapid.checks")
	if f == nil {
		return false
	}
	checks, ok := f.Value.(flag.Getter)
	if !ok {
		return false
	}
	n, ok := checks.Get().(int)
	return ok && n >= many
})

// Steps is the greatest length of a history that has up to most steps where some long ones are asked for.
func Steps(most int) int {
	if Wide() {
		return max(1, most/8)
	}
	return most
}

// Plain hides the method Helper of a test. Testify calls it in every assertion, and it walks the stack.
func Plain(t require.TestingT) require.TestingT { return plain{t} }

type plain struct{ t require.TestingT }

func (p plain) Errorf(format string, args ...any) { p.t.Errorf(format, args...) }
func (p plain) FailNow()                          { p.t.FailNow() }
