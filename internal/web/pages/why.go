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

package pages

import (
	"net/url"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

// mostRows of a table of the facts behind an answer.
const mostRows = 20

// whyBody is the short answer, and the facts behind it.
type whyBody struct {
	// About is what the job is.
	About []piece
	Lines []whyLine
	Parts []whyPart
}

// whyLine is a topic with what there is to say about it.
type whyLine struct {
	Topic string
	Text  []piece
}

// whyPart is a screen.Part with links.
type whyPart struct {
	Title  string
	Text   [][]piece
	Header []string
	// Rows have cells. Without a header the first cell of a row names the others.
	Rows [][]piece
	More int64
}

// piece of a text; one with a link names an object that has a page.
type piece struct{ Text, Link string }

func whyOf(now time.Time, story *screen.Story) *whyBody {
	known, b := namesOf(story), &whyBody{}
	for _, line := range screen.Short(now, story) {
		if line.Topic == "" {
			b.About = append(b.About, known.linked(line.Text)...)
			continue
		}
		b.Lines = append(b.Lines, whyLine{line.Topic, known.linked(line.Text)})
	}
	for _, part := range screen.Wide(now, story, mostRows) {
		p := whyPart{Title: strings.TrimSuffix(part.Title, ":"), More: part.More}
		for _, name := range part.Header {
			p.Header = append(p.Header, name[:1]+strings.ToLower(name[1:]))
		}
		for _, text := range part.Text {
			p.Text = append(p.Text, known.linked(text))
		}
		for _, row := range part.Rows {
			p.Rows = append(p.Rows, known.row(part.Header, row))
		}
		b.Parts = append(b.Parts, p)
	}
	return b
}

// mentions are the names of objects in a story, as texts write them, with links.
type mentions struct{ jobs, quotas, queues map[string]string }

// namesOf has only what the answers name as an object. A message of a tenant adds nothing.
func namesOf(s *screen.Story) *mentions {
	n := &mentions{map[string]string{}, map[string]string{}, map[string]string{}}
	quota := func(name string) { n.quotas[name] = "/quotas/" + url.PathEscape(name) }
	queue := func(name string) { n.queues[name] = "/queues/" + url.PathEscape(name) }
	job := func(namespace, job, unit string) { n.jobs[namespace+"/"+job] = jobLink(namespace, unit) }
	if e := s.Unit.Status.Effective; e != nil {
		quota(e.Quota)
		queue(e.Queue)
	}
	if s.Live != nil {
		live := &s.Live.Status
		quota(live.Quota)
		queue(live.Queue)
		for i := range live.Shortages {
			x := &live.Shortages[i]
			quota(x.Level)
			queue(x.ClaimedIn)
			if namespace, unit, is := strings.Cut(x.ClaimedBy, "/"); is {
				job(namespace, unit, unit)
			}
		}
		if live.Holders != nil {
			for i := range live.Holders.Units {
				u := &live.Holders.Units[i]
				job(u.Namespace, u.Name, u.Name)
				job(u.Namespace, u.Job, u.Name)
			}
		}
	}
	for i := range s.Ahead {
		job(s.Ahead[i].Namespace, s.Ahead[i].Name, s.Ahead[i].Name)
		job(s.Ahead[i].Namespace, s.Ahead[i].Job, s.Ahead[i].Name)
	}
	if s.Taking != nil {
		for i := range s.Taking.Victims {
			v := &s.Taking.Victims[i]
			job(v.Namespace, v.Job, v.Unit)
		}
	}
	if s.Taken != nil && s.Taken.Taker != nil {
		job(s.Taken.Taker.Namespace, s.Taken.Taker.Job, s.Taken.Taker.Unit)
	}
	delete(n.quotas, "")
	delete(n.queues, "")
	return n
}

// aroundNames are what stands between words.
const aroundNames = " ,;()\""

// linked finds jobs by their names, and a quota or queue behind a word that says what it is.
func (n *mentions) linked(text string) (all []piece) {
	plain, before := 0, ""
	for at := 0; at < len(text); {
		if strings.IndexByte(aroundNames, text[at]) >= 0 {
			at++
			continue
		}
		word := text[at:]
		if end := strings.IndexAny(word, aroundNames); end >= 0 {
			word = word[:end]
		}
		name := strings.TrimRight(word, ".:")
		link := n.jobs[name]
		switch before {
		case "quota", "at":
			link = n.quotas[name]
		case "queue":
			link = n.queues[name]
		}
		if link != "" {
			if plain < at {
				all = append(all, piece{Text: text[plain:at]})
			}
			all = append(all, piece{name, link})
			plain = at + len(name)
		}
		before, at = strings.ToLower(word), at+len(word)
	}
	if plain < len(text) {
		all = append(all, piece{Text: text[plain:]})
	}
	return all
}

// row links each cell that is a name as a whole.
func (n *mentions) row(header, cells []string) (row []piece) {
	for i, text := range cells {
		label := strings.TrimSuffix(cells[0], ":")
		if header != nil {
			label = header[i]
		}
		link := n.jobs[text]
		switch strings.ToLower(label) {
		case "quota":
			link = n.quotas[text]
		case "queue":
			link = n.queues[text]
		}
		row = append(row, piece{text, link})
	}
	return row
}
