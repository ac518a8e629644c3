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
	"regexp"
	"strings"
)

const (
	mostWords          = 30 // of a sentence
	mostWordsOfComment = 25 // of a sentence
	meanWords          = 20 // of the sentences of a file
	mostOfACell        = 25 // words
)

var sentenceEnd = regexp.MustCompile(`[.!?][)"”*]*\s+`)

// A rule has a pattern that no sentence matches. The first group of the pattern is the text to show.
type rule struct {
	says     string
	pattern  *regexp.Regexp
	comments bool // the rule holds for comments only
	opening  bool // the rule looks at the first sentence of a comment only
}

var rules = []rule{
	{says: "%q is out of use", pattern: regexp.MustCompile(
		`(?i)\b(anew|besides?|bears|whoever|for ever|no more|is to be|as ever|meanwhile|want of|thereof)\b`)},
	{says: "a sentence starts with %q",
		pattern: regexp.MustCompile(`^(What|Who|Whoever|One that|Those that|It is \S+( \S+)? that)\b.*[^?]$`)},
	{says: "a sentence starts with %q", comments: true,
		pattern: regexp.MustCompile(`^(what|who|whoever|one that|those that)\b.*[^?]$`)},
	{says: "%q defines by negation", comments: true, pattern: regexp.MustCompile(
		`(?i)\b((is|are) not what|(no|nothing|nobody|none|anything) (\S+ ){0,3}but)\b`)},
	{says: "a sentence has %q twice", comments: true, pattern: regexp.MustCompile(`(?i)\b(what)\b.*\bwhat\b`)},
	{says: "a comment starts with %q without its noun", comments: true, opening: true,
		pattern: regexp.MustCompile(`^(?i)(it|they|them|those)\b`)},
}

// block is a piece of text that ends where its sentence ends: a paragraph, an item, a cell, a description.
type block struct {
	where   string // line, or path of a field
	text    string // one word stands for code
	cell    bool
	comment int  // lines of the comment that holds the block
	first   bool // the block opens its comment
}

// finding is one place where a block does not follow a rule.
type finding struct {
	owner, file string // the owner has a number in exceptions.yaml: the file, or its package
	where, says string
	score       int // how much its comment needs care: number of findings, and of lines
}

// check returns the findings of one file in order.
func check(blocks []block) (found []finding) {
	say := func(b block, format string, args ...any) {
		found = append(found, finding{where: b.where, says: fmt.Sprintf(format, args...), score: b.comment})
	}
	words, sentences := 0, 0
	for _, b := range blocks {
		if n := len(strings.Fields(b.text)); b.cell && n > mostOfACell {
			say(b, "a cell of %d words, %d are allowed: %s", n, mostOfACell, begin(b.text))
		}
		most := mostWords
		if b.comment > 0 {
			most = mostWordsOfComment
		}
		for i, s := range splitSentences(b.text) {
			for _, r := range rules {
				for _, match := range r.matches(b, i == 0, s) {
					say(b, r.says+": %s", match[1], begin(s))
				}
			}
			n := len(strings.Fields(s))
			if n > most && !b.cell {
				say(b, "a sentence of %d words, %d are allowed: %s", n, most, begin(s))
			}
			if !b.cell && b.comment == 0 && n > 3 { // shorter ones are titles and labels
				words, sentences = words+n, sentences+1
			}
		}
	}
	if words > meanWords*sentences {
		say(block{where: "1"}, "sentences have %.1f words on average, %d are allowed",
			float64(words)/float64(sentences), meanWords)
	}
	addCounts(found)
	return found
}

func (r rule) matches(b block, first bool, sentence string) [][]string {
	if r.comments && b.comment == 0 || r.opening && !(first && b.first) {
		return nil
	}
	return r.pattern.FindAllStringSubmatch(sentence, -1)
}

// addCounts adds to each score the number of findings at the same place.
func addCounts(found []finding) {
	count := map[string]int{}
	for _, f := range found {
		count[f.where]++
	}
	for i := range found {
		found[i].score += count[found[i].where]
	}
}

func splitSentences(s string) (out []string) {
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
