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
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

var constantName = regexp.MustCompile(`\b(Label|Annotation|Queue(?:Name|Path)Key|OverridePrefix)\w*`)

// keyTable renders the constants of a Go file that are keys of labels and annotations, with their comments. A constant
// without a comment has that of the constant before it.
func keyTable(file string) (string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var names, comments []string
	values := map[string]string{}
	comment := ""
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if text := oneLine(spec.Doc.Text()); text != "" {
			comment = text
		}
		name := spec.Names[0].Name
		if !constantName.MatchString(name) || len(spec.Values) == 0 {
			return false
		}
		value := valueOf(spec.Values[0], values)
		if !strings.Contains(value, "/") {
			return false
		}
		values[name] = value
		names, comments = append(names, name), append(comments, comment)
		return false
	})
	if len(names) == 0 {
		return "", fmt.Errorf("%s has no key of a label or annotation", file)
	}
	var b strings.Builder
	b.WriteString("| key | meaning |\n|---|---|\n")
	for i, name := range names {
		text := strings.TrimPrefix(comments[i], name+" ")
		text = constantName.ReplaceAllStringFunc(text, func(of string) string {
			if value, known := values[of]; known {
				return "`" + value + "`"
			}
			return of
		})
		fmt.Fprintf(&b, "| `%s` | %s |\n", values[name], text)
	}
	return b.String(), nil
}

// valueOf a constant: a text, or the sum of constants and texts.
func valueOf(e ast.Expr, known map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value) // numbers give ""
		return text
	case *ast.Ident:
		return known[e.Name]
	case *ast.BinaryExpr:
		return valueOf(e.X, known) + valueOf(e.Y, known)
	default:
		return ""
	}
}
