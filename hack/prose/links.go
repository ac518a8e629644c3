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
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// brokenLinks returns a line for each link of a Markdown file to a file or heading of the repository that does not
// exist. Links to other sites are not followed.
func brokenLinks(root fs.FS, file string) ([]string, error) {
	source, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, err
	}
	var broken []string
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
			broken = append(broken, fmt.Sprintf("link to %s: no such file", link.Destination))
			return ast.WalkContinue, nil
		}
		if err != nil {
			return ast.WalkStop, err
		}
		if anchor == "" || path.Ext(target) != ".md" {
			return ast.WalkContinue, nil
		}
		there, err := fs.ReadFile(root, target)
		if err == nil && !headings(there)[anchor] {
			broken = append(broken, fmt.Sprintf("link to %s: no such heading", link.Destination))
		}
		return ast.WalkContinue, err
	})
	return broken, err
}

func parse(source []byte) ast.Node {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
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
