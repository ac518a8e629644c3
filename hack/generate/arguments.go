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
	"reflect"
	"strconv"
	"strings"
)

// structTable renders the fields of a Go struct, by their JSON names, with their comments.
func structTable(file, name string) (string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return "", err
	}
	var fields *ast.FieldList
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
			if s, ok := spec.Type.(*ast.StructType); ok {
				fields = s.Fields
			}
		}
		return fields == nil
	})
	if fields == nil {
		return "", fmt.Errorf("%s has no struct %s", file, name)
	}
	var b strings.Builder
	b.WriteString("| argument | meaning |\n|---|---|\n")
	for _, field := range fields.List {
		if len(field.Names) == 0 || field.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(field.Tag.Value)
		if err != nil {
			return "", fmt.Errorf("%s: tag of %s: %w", file, field.Names[0], err)
		}
		json, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		fmt.Fprintf(&b, "| `%s` | %s |\n", json, meaning(json, field.Doc.Text()))
	}
	return b.String(), nil
}
