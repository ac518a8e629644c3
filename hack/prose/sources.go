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
	"errors"
	"fmt"
	goast "go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	mdparser "github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// comments returns the comments of a Go file, without code, directives, markers of generators, and the licence.
// Generated files have none.
func comments(source []byte) (blocks []block, err error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || goast.IsGenerated(f) {
		return nil, err
	}
	var parse comment.Parser
	printer := comment.Printer{TextWidth: -1}
	for _, c := range f.Comments {
		lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(c.Text()), "\n"),
			func(line string) bool { return strings.HasPrefix(line, "+") })
		if len(lines) == 0 || strings.HasPrefix(lines[0], "Copyright") {
			continue
		}
		b := block{where: fmt.Sprint(files.Position(c.Pos()).Line), comment: len(lines), first: true}
		add := func(content []comment.Block) {
			for _, part := range content {
				if _, code := part.(*comment.Code); !code {
					b.text = string(printer.Text(&comment.Doc{Content: []comment.Block{part}}))
					blocks, b.first = append(blocks, b), false
				}
			}
		}
		for _, part := range parse.Parse(strings.Join(lines, "\n")).Content {
			if list, ok := part.(*comment.List); ok {
				for _, item := range list.Items {
					add(item.Content)
				}
			} else {
				add([]comment.Block{part})
			}
		}
	}
	return blocks, nil
}

// markdownBlocks returns the prose of a Markdown file.
func markdownBlocks(source []byte) (blocks []block) {
	// The walk fails only if the function below does.
	_ = ast.Walk(parse(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		cell := n.Kind() == extast.KindTableCell
		if !entering || !cell && n.Kind() != ast.KindParagraph && n.Kind() != ast.KindTextBlock {
			return ast.WalkContinue, nil
		}
		b := block{text: plain(n, source), cell: cell}
		if at := n.Lines(); at != nil && at.Len() > 0 {
			b.where = fmt.Sprint(1 + strings.Count(string(source[:at.At(0).Start]), "\n"))
		}
		blocks = append(blocks, b)
		return ast.WalkSkipChildren, nil
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
			b.WriteString("CODE")
		default:
			b.WriteString(plain(c, source))
		}
	}
	return b.String()
}

// descriptions returns the descriptions of the fields of a CustomResourceDefinition.
func descriptions(data []byte) (blocks []block, err error) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		return nil, err
	}
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

// brokenLinks returns a line for each link of a Markdown file to a file or heading of the repository that does not
// exist. Links to other sites are not followed.
func brokenLinks(root fs.FS, file string) (broken []string, err error) {
	source, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, err
	}
	err = ast.Walk(parse(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering || strings.Contains(string(link.Destination), "://") {
			return ast.WalkContinue, nil
		}
		to, anchor, _ := strings.Cut(string(link.Destination), "#")
		target := file
		if to != "" {
			target = path.Join(path.Dir(file), to)
		}
		_, err := fs.Stat(root, target)
		if errors.Is(err, fs.ErrNotExist) {
			broken = append(broken, fmt.Sprintf("%s: link to %s: no such file", file, link.Destination))
			return ast.WalkContinue, nil
		}
		if err != nil || anchor == "" || path.Ext(target) != ".md" {
			return ast.WalkContinue, err
		}
		there, err := fs.ReadFile(root, target)
		if err == nil && !headings(there)[anchor] {
			broken = append(broken, fmt.Sprintf("%s: link to %s: no such heading", file, link.Destination))
		}
		return ast.WalkContinue, err
	})
	return broken, err
}

func parse(source []byte) ast.Node {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(mdparser.WithAutoHeadingID()))
	return md.Parser().Parse(text.NewReader(source))
}

// headings are the anchors of a file.
func headings(source []byte) map[string]bool {
	found := map[string]bool{}
	_ = ast.Walk(parse(source), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if id, ok := n.AttributeString("id"); ok && entering && n.Kind() == ast.KindHeading {
			found[string(id.([]byte))] = true
		}
		return ast.WalkContinue, nil
	})
	return found
}
