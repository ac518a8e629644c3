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
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	mostWords   = 30 // of a sentence
	meanWords   = 20 // of the sentences of a file
	mostOfACell = 25 // words
	code        = "CODE"
)

var (
	sentenceEnd = regexp.MustCompile(`[.!?][)"”*]*\s+`)
	opening     = regexp.MustCompile(`^(What|Who|Whoever|One that|Those that|It is \S+( \S+)? that)\b`)
	outOfUse    = regexp.MustCompile(
		`(?i)\b(anew|besides?|bears|whoever|for ever|no more|is to be|as ever|meanwhile|want of|thereof)\b`)
)

// block is a piece of text that ends where its sentence ends: a paragraph, an item, a cell, a description, a comment.
type block struct {
	where   string // line, or path of a field
	text    string // code is replaced by one word
	cell    bool
	comment bool // only its words are checked
}

// check returns a line for each rule that a block of a file does not follow, and where.
func check(blocks []block) []string {
	var found []string
	say := func(b block, format string, args ...any) {
		found = append(found, b.where+": "+fmt.Sprintf(format, args...))
	}
	words, sentences := 0, 0
	for _, b := range blocks {
		if n := len(strings.Fields(b.text)); b.cell && n > mostOfACell {
			say(b, "a cell of %d words, %d are allowed: %s", n, mostOfACell, begin(b.text))
		}
		for _, s := range splitSentences(b.text) {
			for _, word := range outOfUse.FindAllString(s, -1) {
				say(b, "%q is out of use: %s", word, begin(s))
			}
			if b.comment {
				continue
			}
			n := len(strings.Fields(s))
			if n > mostWords && !b.cell {
				say(b, "a sentence of %d words, %d are allowed: %s", n, mostWords, begin(s))
			}
			if start := opening.FindString(s); start != "" && !strings.HasSuffix(s, "?") {
				say(b, "a sentence starts with %q: %s", start, begin(s))
			}
			if !b.cell && n > 3 { // shorter ones are titles and labels
				words, sentences = words+n, sentences+1
			}
		}
	}
	if words > meanWords*sentences {
		found = append(found, fmt.Sprintf("1: sentences have %.1f words on average, %d are allowed",
			float64(words)/float64(sentences), meanWords))
	}
	return found
}

func splitSentences(s string) []string {
	var out []string
	for s = strings.TrimSpace(s); s != ""; {
		end := sentenceEnd.FindStringIndex(s)
		if end == nil {
			return append(out, s)
		}
		out, s = append(out, strings.TrimSpace(s[:end[1]])), s[end[1]:]
	}
	return out
}

func begin(s string) string {
	if words := strings.Fields(s); len(words) > 10 {
		return strings.Join(words[:10], " ") + " …"
	}
	return s
}

// markdownBlocks returns the prose of a Markdown file.
func markdownBlocks(source []byte) []block {
	var blocks []block
	// The walk fails only if the function below does.
	_ = ast.Walk(parse(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n.Kind() {
		case ast.KindParagraph, ast.KindTextBlock, extast.KindTableCell:
			b := block{text: plain(n, source), cell: n.Kind() == extast.KindTableCell}
			if at := n.Lines(); at != nil && at.Len() > 0 {
				b.where = fmt.Sprint(1 + strings.Count(string(source[:at.At(0).Start]), "\n"))
			}
			blocks = append(blocks, b)
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return blocks
}

// plain is the text of a node, with one word in place of code.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			b.Write(c.Segment.Value(source))
			if c.SoftLineBreak() || c.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.CodeSpan, *ast.AutoLink:
			b.WriteString(code)
		default:
			b.WriteString(plain(c, source))
		}
	}
	return b.String()
}

// descriptions returns what a CustomResourceDefinition says of its fields.
func descriptions(data []byte) ([]block, error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return nil, err
	}
	var blocks []block
	for _, v := range crd.Spec.Versions {
		blocks = append(blocks, fieldBlocks(crd.Spec.Names.Kind, v.Schema.OpenAPIV3Schema)...)
	}
	return blocks, nil
}

func fieldBlocks(path string, s *apiextensionsv1.JSONSchemaProps) []block {
	if s == nil {
		return nil
	}
	blocks := []block{{where: path, text: s.Description}}
	if s.XMapType != nil { // a reference: Kubernetes describes its fields
		return blocks
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		field := s.Properties[name]
		blocks = append(blocks, fieldBlocks(path+"."+name, &field)...)
	}
	if s.Items != nil {
		blocks = append(blocks, fieldBlocks(path+"[]", s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil {
		blocks = append(blocks, fieldBlocks(path+".*", s.AdditionalProperties.Schema)...)
	}
	return blocks
}

// comments returns the comments of a Go file, without directives such as go:build and nolint.
func comments(source []byte) ([]block, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var blocks []block
	for _, c := range f.Comments {
		line, text := files.Position(c.Pos()).Line, strings.Join(strings.Fields(c.Text()), " ")
		blocks = append(blocks, block{where: fmt.Sprint(line), text: text, comment: true})
	}
	return blocks, nil
}
