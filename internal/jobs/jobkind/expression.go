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

package jobkind

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	celast "github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// self is what an expression calls the job.
const self = "self"

// Expression is CEL over one job, as the rules of CustomResourceDefinitions are: the same functions, the same limit on
// what one evaluation may cost. It reads fields and writes none.
type Expression struct {
	text    string
	program cel.Program
	// Reads are the fields that it looks at: caches keep these.
	Reads []Path
}

var errReadsAll = errors.New("self as a whole cannot be read, only fields of it")

type expressions struct{ env *cel.Env }

// sharedExpressions are made when they are asked for first: their environment takes a while.
var sharedExpressions = sync.OnceValues(newExpressions)

func newExpressions() (*expressions, error) {
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable(self, cel.DynType)},
	})
	if err != nil {
		return nil, err
	}
	env, err := set.Env(environment.StoredExpressions)
	return &expressions{env}, err
}

// compile reads an expression whose value is of this type.
func (x *expressions) compile(text string, want *cel.Type) (*Expression, error) {
	parsed, issues := x.env.Compile(text)
	if issues != nil && issues.Err() != nil {
		return nil, issues.Err()
	}
	if is := parsed.OutputType(); !is.IsExactType(want) && !is.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it gives a value of type %s, want %s", is, want)
	}
	program, err := x.env.Program(parsed,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostLimit(apiservercel.PerCallLimit),
		cel.CostTracking(&library.CostEstimator{}),
	)
	if err != nil {
		return nil, err
	}
	e := &Expression{text: text, program: program}
	e.Reads, err = readsOf(parsed.NativeRep())
	return e, err
}

// eval returns the value; an error, too, for a field that is not there.
func (e *Expression) eval(job map[string]any) (ref.Val, error) {
	value, _, err := e.program.Eval(map[string]any{self: job})
	return value, err
}

// Holds says whether the expression is true. An expression that fails, because a field is absent, is false.
func (e *Expression) Holds(job map[string]any) bool {
	if e == nil {
		return false
	}
	value, err := e.eval(job)
	return err == nil && value == types.True
}

// Number is the value, zero where a field is not there, and never negative.
func (e *Expression) Number(job map[string]any) int64 {
	if e == nil {
		return 0
	}
	value, err := e.eval(job)
	if err != nil {
		return 0
	}
	switch n := value.Value().(type) {
	case int64:
		return max(n, 0)
	case uint64:
		return int64(min(n, math.MaxInt64))
	case float64:
		if n > 0 && n <= math.MaxInt32 {
			return int64(n)
		}
	}
	return 0
}

// Counts is a list of names and numbers, and empty if a field is absent. Entries without a name, or with a negative
// number, are left out.
func (e *Expression) Counts(job map[string]any) map[string]int32 {
	if e == nil {
		return nil
	}
	value, err := e.eval(job)
	list, ok := value.(traits.Lister)
	if err != nil || !ok {
		return nil
	}
	counts := map[string]int32{}
	for it := list.Iterator(); it.HasNext() == types.True; {
		entry, ok := it.Next().(traits.Mapper)
		if !ok {
			continue
		}
		name, _ := entry.Find(types.String("name"))
		count, _ := entry.Find(types.String("count"))
		text, isText := name.(types.String)
		if n, isInt := count.(types.Int); isText && isInt && n >= 0 && n <= math.MaxInt32 {
			counts[string(text)] = int32(n)
		}
	}
	return counts
}

// Text is the value, empty where a field is not there.
func (e *Expression) Text(job map[string]any) string {
	if e == nil {
		return ""
	}
	value, err := e.eval(job)
	if err != nil {
		return ""
	}
	text, _ := value.Value().(string)
	return text
}

// readsOf are the fields of self that an expression looks at: the longest chain of names from self on, of each use.
func readsOf(expr *celast.AST) ([]Path, error) {
	var reads []Path
	var err error
	var visit func(e celast.NavigableExpr)
	visit = func(e celast.NavigableExpr) {
		if p, is := chain(e); is {
			if len(p) == 0 {
				err = errReadsAll
				return
			}
			reads = append(reads, p)
			return
		}
		for _, child := range e.Children() {
			visit(child)
		}
	}
	visit(celast.NavigateAST(expr))
	return minimal(reads), err
}

// chain is the path that the expression is, if it is one: self.a, has(self.a), self["a"], self.?a.
func chain(e celast.NavigableExpr) (Path, bool) {
	switch e.Kind() { //nolint:exhaustive // others are no chain
	case celast.IdentKind:
		return nil, e.AsIdent() == self
	case celast.SelectKind:
		if p, is := chain(e.Children()[0]); is {
			return p.Child(e.AsSelect().FieldName()), true
		}
	case celast.CallKind:
		call := e.AsCall()
		if name := call.FunctionName(); name != operators.Index && name != operators.OptSelect &&
			name != operators.OptIndex || len(call.Args()) != 2 {
			return nil, false
		}
		key := call.Args()[1]
		if key.Kind() != celast.LiteralKind {
			return nil, false
		}
		name, isText := key.AsLiteral().Value().(string)
		if p, is := chain(e.Children()[0]); is && isText {
			return p.Child(name), true
		}
	}
	return nil, false
}

// minimal drops paths below others.
func minimal(paths []Path) []Path {
	slices.SortFunc(paths, func(a, b Path) int { return slices.Compare(a, b) })
	var kept []Path
	for _, p := range paths {
		if n := len(kept); n > 0 && len(kept[n-1]) <= len(p) && slices.Equal(kept[n-1], p[:len(kept[n-1])]) {
			continue
		}
		kept = append(kept, p)
	}
	return kept
}
