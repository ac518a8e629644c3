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
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// plant returns the file that has the bug, and its text with it.
func (m *mutant) plant(root string) (file string, text []byte, err error) {
	dir, name, ok := strings.Cut(m.Function, ":")
	if !ok {
		return "", nil, fmt.Errorf("%s: %q is not a directory, a colon and a name", m.Name, m.Function)
	}
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return "", nil, err
	}
	set := token.NewFileSet()
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return "", nil, err
		}
		parsed, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
		if err != nil {
			return "", nil, err
		}
		node := declared(parsed, name)
		if node == nil {
			continue
		}
		start, end, err := only(set, source, node, m.Replace)
		if err != nil {
			return "", nil, fmt.Errorf("%s: %s: %w", m.Name, m.Function, err)
		}
		return file, slices.Concat(source[:start], []byte(m.With), source[end:]), nil
	}
	return "", nil, fmt.Errorf("%s: there is no %s", m.Name, m.Function)
}

// declared finds a function, a method or a package variable in a file.
func declared(f *ast.File, name string) ast.Node {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if receiver(d)+d.Name.Name == name {
				return d.Body
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && v.Names[0].Name == name {
					return v
				}
			}
		}
	}
	return nil
}

// receiver is the type of a method and a dot.
func receiver(d *ast.FuncDecl) (prefix string) {
	if d.Recv == nil {
		return ""
	}
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && prefix == "" {
			prefix = id.Name + "."
		}
		return prefix == ""
	})
	return prefix
}

// only finds the one expression or statement in a node that is written so.
func only(set *token.FileSet, source []byte, in ast.Node, written string) (start, end int, err error) {
	want := symbols([]byte(written))
	ast.Inspect(in, func(n ast.Node) bool {
		switch n.(type) {
		case ast.Expr, ast.Stmt:
		default:
			return true
		}
		from, to := set.Position(n.Pos()).Offset, set.Position(n.End()).Offset
		if symbols(source[from:to]) != want || from == start && to == end {
			return true
		}
		if end > 0 {
			err = errors.New("it has more than one " + written)
		}
		start, end = from, to
		return true
	})
	if end == 0 {
		err = errors.New("it has no " + written)
	}
	return start, end, err
}

// symbols is source without white space, comments, and commas and semicolons at ends of lines.
func symbols(source []byte) string {
	var s scanner.Scanner
	s.Init(token.NewFileSet().AddFile("", -1, len(source)), source, nil, 0)
	var out strings.Builder
	comma := false
	for {
		_, tok, text := s.Scan()
		switch {
		case tok == token.EOF:
			return out.String()
		case tok == token.SEMICOLON && text == "\n":
			continue
		case comma && tok != token.RPAREN && tok != token.RBRACE:
			out.WriteString(", ")
		}
		if comma = tok == token.COMMA; comma {
			continue
		}
		if text == "" {
			text = tok.String()
		}
		out.WriteString(text + " ")
	}
}
