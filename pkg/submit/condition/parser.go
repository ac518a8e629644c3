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

package condition

import (
	"fmt"
	"strconv"
	"strings"
	"text/scanner"
)

// maxDepth bounds the nesting of an expression.
const maxDepth = 100

// parser reads an expression by descent. After an error it reads nothing.
type parser struct {
	tokens []string
	at     int
	depth  int
	err    error
}

// scan splits the text; operators of two characters are one token.
func scan(text string) (tokens []string) {
	var s scanner.Scanner
	s.Init(strings.NewReader(text))
	s.Mode = scanner.ScanIdents | scanner.ScanStrings | scanner.ScanInts
	s.Error = func(*scanner.Scanner, string) {}
	for r := s.Scan(); r != scanner.EOF; r = s.Scan() {
		token := s.TokenText()
		if next := s.Peek(); r == next && (r == '&' || r == '|') || (r == '=' || r == '!') && next == '=' {
			token += string(s.Next())
		}
		tokens = append(tokens, token)
	}
	return tokens
}

func (p *parser) peek() string {
	if p.err != nil || p.at >= len(p.tokens) {
		return ""
	}
	return p.tokens[p.at]
}

// accept reads the token if it comes next.
func (p *parser) accept(token string) bool {
	if p.peek() != token {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(token string) {
	if !p.accept(token) {
		p.fail()
	}
}

// fail notes the first token that is not understood.
func (p *parser) fail() {
	if p.err == nil {
		p.err = fmt.Errorf("%q is not understood, token %d", p.peek(), p.at+1)
	}
}

func (p *parser) or() expression {
	if p.depth++; p.depth > maxDepth {
		p.fail()
	}
	defer func() { p.depth-- }()
	e := p.and()
	for p.accept("||") {
		e = either(e, p.and(), true)
	}
	return e
}

func (p *parser) and() expression {
	e := p.relation()
	for p.accept("&&") {
		e = either(e, p.relation(), false)
	}
	return e
}

func (p *parser) relation() expression {
	e := p.unary()
	switch {
	case p.accept("=="):
		return equal(e, p.unary(), true)
	case p.accept("!="):
		return equal(e, p.unary(), false)
	case p.accept("in"):
		return in(e, p.unary())
	}
	return e
}

func (p *parser) unary() expression {
	negated := false
	for p.accept("!") {
		negated = !negated
	}
	e := p.primary()
	if negated {
		return not(e)
	}
	return e
}

func (p *parser) primary() expression {
	switch token := p.peek(); {
	case p.accept("("):
		e := p.or()
		p.expect(")")
		return e
	case p.accept("["):
		return p.list()
	case p.accept("has"):
		p.expect("(")
		e, name := p.chain(true)
		p.expect(")")
		return has(e, name)
	case token == "true" || token == "false":
		p.at++
		return constant(token == "true")
	case strings.HasPrefix(token, `"`):
		return constant(p.text())
	default:
		e, _ := p.chain(false)
		return e
	}
}

func constant(value any) expression { return func(scope) (any, error) { return value, nil } }

func (p *parser) text() string {
	text, err := strconv.Unquote(p.peek())
	if err != nil {
		p.fail()
	}
	p.at++
	return text
}

func (p *parser) list() expression {
	var items []any
	for p.err == nil && !p.accept("]") {
		items = append(items, p.text())
		if p.peek() != "]" {
			p.expect(",")
		}
	}
	return constant(items)
}

// chain reads a variable and its fields. If last is set it leaves the last field to the caller, and returns its name.
func (p *parser) chain(last bool) (e expression, name string) {
	variable := p.name()
	e = func(s scope) (any, error) {
		value, there := s[variable]
		if !there {
			return nil, errAbsent
		}
		return value, nil
	}
	for p.err == nil && (p.peek() == "." || p.peek() == "[") {
		if name != "" {
			e = field(e, name)
		}
		if p.accept("[") {
			name = p.text()
			p.expect("]")
			continue
		}
		p.expect(".")
		if name = p.name(); name == "exists" && p.accept("(") {
			e, name = p.exists(e), ""
		}
	}
	switch {
	case last && name == "":
		p.fail()
	case !last && name != "":
		e, name = field(e, name), ""
	}
	return e, name
}

func (p *parser) exists(of expression) expression {
	variable := p.name()
	p.expect(",")
	test := p.or()
	p.expect(")")
	return exists(of, variable, test)
}

func (p *parser) name() string {
	token := p.peek()
	for i, r := range token {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			token = ""
		}
	}
	if token == "" {
		p.fail()
	}
	p.at++
	return token
}
