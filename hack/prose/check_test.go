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
			assert.Equal(t, test.want, lines(check(markdownBlocks([]byte(test.markdown)))))
		})
	}
}

func lines(found []finding) (lines []string) {
	for _, f := range found {
		lines = append(lines, f.where+": "+f.says)
	}
	return lines
}

func TestCheckComments(t *testing.T) {
	words := func(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
	for name, test := range map[string]struct {
		code string
		want []string
	}{
		"package": {code: "// Package x begins anew.\npackage x",
			want: []string{`1: "anew" is out of use: Package x begins anew.`}},
		"end of a line": {code: "package x\n\nvar a int // for whoever asks\n",
			want: []string{`3: "whoever" is out of use: for whoever asks`}},
		"inside of a function": {code: "package x\n\nfunc f() {\n\t// The job waits for\n\t// ever.\n}\n",
			want: []string{`4: "for ever" is out of use: The job waits for ever.`}},
		"across lines": {code: "package x\n\n// A job. It takes no\n// more than one.\nvar a int\n",
			want: []string{`3: "no more" is out of use: It takes no more than one.`}},
		"before a directive": {code: "package x\n\n// f is beside g.\n//\n//go:noinline\nfunc f() {}\n",
			want: []string{`3: "beside" is out of use: f is beside g.`}},
		"long sentence": {code: "package x\n\n// Short.\n// " + words(25) + ".\n//\n// " + words(26) + ".\nvar a int\n",
			want: []string{"3: a sentence of 26 words, 25 are allowed: " + words(10) + " …"}},
		"paragraphs and items end sentences": {
			code: "package x\n\n// " + words(20) + "\n//\n// " + words(20) + ":\n//   - " + words(20) + "\nvar a int\n"},
		"item": {code: "package x\n\n// Two:\n//   - a job\n//   - who asks\nvar a int\n",
			want: []string{`3: a sentence starts with "who": who asks`}},
		"question": {code: "package x\n\n// Who asks?\nvar a int\n"},
		"opening": {code: "package x\n\n// The rest. What is free is a vector.\nvar a int // what is free\n",
			want: []string{`3: a sentence starts with "What": What is free is a vector.`,
				`4: a sentence starts with "what": what is free`}},
		"negation": {code: "package x\n\n// Nothing of it but the name.\nvar a int // is not what it holds\n",
			want: []string{`3: "Nothing of it but" defines by negation: Nothing of it but the name.`,
				`4: "is not what" defines by negation: is not what it holds`}},
		"what, what": {code: "package x\n\n// f tells what of what.\nvar a int // tells what. And what else\n",
			want: []string{`3: a sentence has "what" twice: f tells what of what.`}},
		"pronoun": {code: "package x\n\n// It waits. It runs.\n//\n// Those end.\nvar a int // the same. Those end.\n",
			want: []string{`3: a comment starts with "It" without its noun: It waits.`}},
		"code":        {code: "package x\n\n// f prints:\n//\n//\twhat is anew\nvar a int\n"},
		"directives":  {code: "//go:build anew\n\npackage x\n\nvar a int //nolint:lll // begins anew\n"},
		"markers":     {code: "package x\n\n// A job.\n// +kubebuilder:validation:anew\nvar a int\n"},
		"licence":     {code: "/*\nCopyright. " + words(40) + "\n*/\n\npackage x\n"},
		"generated":   {code: "// Code generated by x. DO NOT EDIT.\n\n// Package x begins anew.\npackage x\n"},
		"no comments": {code: "package x\n\nvar anew, meanwhile = \"// anew\", `\n// thereof\n`\n"},
		"parts of words": {
			code: "// Whatever renews anewness bothers no moresby.\npackage x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			blocks, err := comments([]byte(test.code))
			require.NoError(t, err)
			assert.Equal(t, test.want, lines(check(blocks)))
		})
	}
}

func TestScoreIsFindingsAndLines(t *testing.T) {
	blocks, err := comments([]byte("package x\n\n// It is anew.\n//\n// Fine.\nvar a int // anew\n"))
	require.NoError(t, err)
	var scores []int
	for _, f := range check(blocks) {
		scores = append(scores, f.score)
	}
	assert.Equal(t, []int{5, 5, 2}, scores)
}

func TestGoFiles(t *testing.T) {
	files, err := goFiles(fstest.MapFS{
		"pkg/a/b/c/d.go": {}, "pkg/a/a_test.go": {}, "pkg/a/a.md": {}, "cmd/e/main.go": {}, "test/a/testdata/f.go": {},
		"apis/g.go": {}, "examples/h.go": {}, "hack/i.go": {}, "internal/l.go": {}, "manifests/j.go": {}, "other/k.go": {},
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"apis/g.go", "cmd/e/main.go", "examples/h.go", "hack/i.go", "internal/l.go", "manifests/j.go",
		"pkg/a/a_test.go", "pkg/a/b/c/d.go"}, files)
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
		"README.md": {"README.md: link to docs/b.md: no such file", "README.md: link to docs/a.md#none: no such heading"},
		"docs/a.md": {"docs/a.md: link to #below: no such heading"},
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
