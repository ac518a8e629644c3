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

package rawjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// read makes values of all of the text, as encoding/json does.
func read(r *Reader) any {
	switch c := r.peek(); c {
	case '{':
		object := map[string]any{}
		for r.Object(); r.Member(); {
			key := string(r.Key)
			object[key] = read(r)
		}
		return object
	case '[':
		list := []any{}
		for r.Array(); r.Item(); {
			list = append(list, read(r))
		}
		return list
	case '"':
		return string(r.Text())
	case 't', 'f':
		return r.Bool()
	case 'n':
		if string(r.Skip()) != "null" {
			r.Fail()
		}
		return nil
	}
	return json.Number(strconv.FormatInt(r.Integer(), 10))
}

// FuzzReader: valid text is read as encoding/json reads it, or fails where the reader knows less; what is skipped is a whole
// value; and no text makes it panic or read without end.
func FuzzReader(f *testing.F) {
	for _, text := range []string{
		`{"a":[1,-2,true,false,null,{}],"b":{"c":"d\"\\","e":""},"":"é"}`, ` [ ] `, `{"a":"\\"}`, `"\u00e9\n"`, `{"a":1.5}`, `-0`, `{"a":1,}`,
		`[1 2]`, `{"a"`, `"`, `[{"a":"}]"}]`, `{"a":"\\\""}`, `tru`, `{"a":1}}`, "\"\xff\"",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r := NewReader(text)
		have := read(&r)
		whole := r.AtEnd()
		s := NewReader(text)
		skipped := bytes.Clone(s.Skip())
		if !json.Valid(text) {
			return
		}
		require.Equal(t, string(bytes.TrimSpace(text)), string(skipped))
		require.True(t, s.AtEnd())
		if !whole {
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var want any
		require.NoError(t, decoder.Decode(&want))
		if n, ok := want.(json.Number); ok && n == "-0" {
			want = json.Number("0")
		}
		if !bytes.Contains(text, []byte("-0")) {
			require.Equal(t, want, have)
		}
	})
}

func TestReaderFails(t *testing.T) {
	for _, text := range []string{`{"a":1,}`, `[1 2]`, `{"a"`, `"`, `{"a":tru}`, `{"a":1.5}`, `[1,]`, `{,}`, "\"\xff\"", ``} {
		r := NewReader([]byte(text))
		read(&r)
		require.True(t, r.Failed(), text)
		require.False(t, r.AtEnd(), text)
	}
	r := NewReader([]byte(`{"a":1}}`))
	read(&r)
	require.False(t, r.AtEnd())
}
