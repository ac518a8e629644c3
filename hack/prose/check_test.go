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

package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for name, test := range map[string]struct {
		markdown string
		want     []string
	}{
		"short":    {markdown: "# Title\n\nThe queue releases the job. It has room."},
		"question": {markdown: "What is a queue?"},
		"code is one word": {
			markdown: "Short one here now.\n\nAnother short one here.\n\n" + words(29) + " `a b c d`.",
		},
		"code blocks":           {markdown: "Text.\n\n    anew " + words(40) + "\n\n```\nanew\n```\n"},
		"a URL does not end it": {markdown: "See v1.8.0 of it."},
		"long sentence": {
			markdown: "Short one here now.\n\nAnother short one here.\n\n" + words(31) + ".",
			want:     []string{"5: a sentence of 31 words, 30 are allowed: " + words(10) + " …"},
		},
		"long on average": {
			markdown: words(21) + ".",
			want:     []string{"1: sentences have 21.0 words on average, 20 are allowed"},
		},
		"opening": {
			markdown: "- Good item.\n- Fine. What is free is a vector.\n",
			want:     []string{`2: a sentence starts with "What": What is free is a vector.`},
		},
		"cleft": {
			markdown: "It is the queue that waits.",
			want:     []string{`1: a sentence starts with "It is the queue that": It is the queue that waits.`},
		},
		"out of use": {
			markdown: "It waits *for\never*.",
			want:     []string{`1: "for ever" is out of use: It waits for ever.`},
		},
		"a long cell": {
			markdown: "| a | b |\n|---|---|\n| c | " + words(26) + " |\n",
			want:     []string{"3: a cell of 26 words, 25 are allowed: " + words(10) + " …"},
		},
		"a long sentence in a cell": {markdown: "| a | b |\n|---|---|\n| c | " + words(25) + " |\n"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, check(markdownBlocks([]byte(test.markdown))))
		})
	}
}

func TestCheckComments(t *testing.T) {
	long := strings.TrimSpace(strings.Repeat("word ", 31))
	for name, test := range map[string]struct {
		code string
		want []string
	}{
		"package": {code: "// Package x begins anew.\npackage x",
			want: []string{`1: "anew" is out of use: Package x begins anew.`}},
		"end of a line": {code: "package x\n\nvar a int // Whoever asks\n",
			want: []string{`3: "Whoever" is out of use: Whoever asks`}},
		"inside of a function": {code: "package x\n\nfunc f() {\n\t/* It waits for\n\tever. */\n}\n",
			want: []string{`4: "for ever" is out of use: It waits for ever.`}},
		"across lines": {code: "package x\n\n// A job. It takes no\n// more than one.\nvar a int\n",
			want: []string{`3: "no more" is out of use: It takes no more than one.`}},
		"before a directive": {code: "package x\n\n// f is beside g.\n//\n//go:noinline\nfunc f() {}\n",
			want: []string{`3: "beside" is out of use: f is beside g.`}},
		"directives":  {code: "//go:build anew\n\npackage x\n\nvar a int //nolint:lll // begins anew\n"},
		"no comments": {code: "package x\n\nvar anew, meanwhile = \"// anew\", `\n// thereof\n`\n"},
		"parts of words, in a long sentence that starts with What": {
			code: "// What renews anewness bothers no moresby: " + long + ".\npackage x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			blocks, err := comments([]byte(test.code))
			require.NoError(t, err)
			assert.Equal(t, test.want, check(blocks))
		})
	}
}

func TestGoFiles(t *testing.T) {
	files, err := goFiles(fstest.MapFS{
		"pkg/a/b/c/d.go": {}, "pkg/a/a_test.go": {}, "pkg/a/a.md": {}, "cmd/e/main.go": {}, "test/f.go": {},
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"pkg/a/b/c/d.go", "cmd/e/main.go"}, files)
}

func TestBrokenLinks(t *testing.T) {
	root := fstest.MapFS{
		"README.md": {Data: []byte("[a](docs/a.md#why-it-waits) [b](docs/b.md) " +
			"[c](docs/a.md#none) [d](https://example.com/x#y)")},
		"docs/a.md": {Data: []byte("# Top\n\n## Why it waits\n\n[up](../README.md) [here](#top) " +
			"[there](#below) [code](x.go#L1)")},
		"docs/x.go": {},
	}
	for file, want := range map[string][]string{
		"README.md": {"link to docs/b.md: no such file", "link to docs/a.md#none: no such heading"},
		"docs/a.md": {"link to #below: no such heading"},
	} {
		broken, err := brokenLinks(root, file)
		require.NoError(t, err)
		assert.Equal(t, want, broken, file)
	}
}

func TestDescriptions(t *testing.T) {
	blocks, err := descriptions([]byte(`
spec:
  names: {kind: Queue}
  versions:
  - schema:
      openAPIV3Schema:
        description: A Queue.
        properties:
          spec:
            properties:
              ref:
                description: Names an object.
                x-kubernetes-map-type: atomic
                properties: {kind: {description: Kubernetes' words.}}
              list: {items: {description: An item.}}
`))
	require.NoError(t, err)
	assert.Equal(t, []block{
		{where: "Queue", text: "A Queue."},
		{where: "Queue.spec"},
		{where: "Queue.spec.list"},
		{where: "Queue.spec.list[]", text: "An item."},
		{where: "Queue.spec.ref", text: "Names an object."},
	}, blocks)
}
