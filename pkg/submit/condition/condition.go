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

// Package condition evaluates the expressions with which descriptors choose pod sets. It implements the part of CEL
// that the built-in descriptors use, because a whole implementation is larger than the rest of the library. A test of
// the queue compares both.
package condition

import (
	"errors"
	"fmt"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// errAbsent: a field is not there, or has another type.
var errAbsent = errors.New("no such field")

// scope has the values of the variables.
type scope map[string]any

// expression is a part of one that gives a value.
type expression func(scope) (any, error)

// Compile reads an expression over the job, which it calls self. Empty text gives nil.
//
// It reads literals, lists of them, fields, has(), in, ==, !=, !, && and ||, parentheses, and exists() of lists.
func Compile(text string) (*podset.Condition, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	p := &parser{tokens: scan(text)}
	e := p.or()
	if p.err == nil && p.at < len(p.tokens) {
		p.fail()
	}
	if p.err != nil {
		return nil, fmt.Errorf("%q: %w", text, p.err)
	}
	return podset.NewCondition(func(job map[string]any) bool {
		value, err := e(scope{"self": job})
		return err == nil && value == true
	}), nil
}

func field(of expression, name string) expression {
	return func(s scope) (any, error) {
		value, err := of(s)
		if err != nil {
			return nil, err
		}
		fields, isObject := value.(map[string]any)
		found, there := fields[name]
		if !isObject || !there {
			return nil, errAbsent
		}
		return found, nil
	}
}

// has is true if the last field is there. A field before it has to be there, or it is an error.
func has(of expression, name string) expression {
	return func(s scope) (any, error) {
		value, err := of(s)
		if err != nil {
			return nil, err
		}
		fields, _ := value.(map[string]any)
		if _, isList := value.([]any); isList {
			return nil, errAbsent
		}
		_, there := fields[name]
		return there, nil
	}
}

// exists is true if the test holds for one item of a list.
func exists(of expression, name string, test expression) expression {
	return func(s scope) (any, error) {
		value, err := of(s)
		if err != nil {
			return nil, err
		}
		list, isList := value.([]any)
		if !isList {
			return nil, errAbsent
		}
		var failed error
		for _, item := range list {
			switch holds, err := test(scope{"self": s["self"], name: item}); {
			case err == nil && holds == true:
				return true, nil
			case err != nil:
				failed = err
			case holds != false:
				failed = errAbsent
			}
		}
		return false, failed
	}
}

func not(of expression) expression {
	return func(s scope) (any, error) {
		value, err := of(s)
		truth, isBool := value.(bool)
		if err == nil && !isBool {
			err = errAbsent
		}
		return !truth, err
	}
}

// either is || if decided is true, and && if it is false: one side that is decided decides, even if the other fails.
func either(a, b expression, decided bool) expression {
	return func(s scope) (any, error) {
		x, errX := a(s)
		if errX == nil && x == decided {
			return decided, nil
		}
		y, errY := b(s)
		if errY == nil && y == decided {
			return decided, nil
		}
		if err := errors.Join(errX, errY); err != nil {
			return nil, err
		}
		if x != !decided || y != !decided {
			return nil, errAbsent
		}
		return !decided, nil
	}
}

func equal(a, b expression, want bool) expression {
	return func(s scope) (any, error) {
		x, errX := a(s)
		y, errY := b(s)
		if err := errors.Join(errX, errY); err != nil {
			return nil, err
		}
		return same(x, y) == want, nil
	}
}

// same compares literals: text, truth and null.
func same(x, y any) bool {
	switch x.(type) {
	case nil, string, bool:
		switch y.(type) {
		case nil, string, bool:
			return x == y
		}
	}
	return false
}

// in is true if a list has the value, or an object the key.
func in(a, b expression) expression {
	return func(s scope) (any, error) {
		x, errX := a(s)
		y, errY := b(s)
		if err := errors.Join(errX, errY); err != nil {
			return nil, err
		}
		switch y := y.(type) {
		case []any:
			for _, item := range y {
				if same(x, item) {
					return true, nil
				}
			}
			return false, nil
		case map[string]any:
			key, isText := x.(string)
			_, there := y[key]
			return isText && there, nil
		default:
			return nil, errAbsent
		}
	}
}
