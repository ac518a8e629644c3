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

package pictures

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/hack/generate/draw"
)

// Write the pictures of the documentation into a directory, each as NAME.svg.
func Write(dir string, dashboard []Section) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	moments, _ := borrowing()
	panels, err := drawDashboard(dashboard)
	if err != nil {
		return err
	}
	for name, p := range map[string]*draw.Picture{
		"first-quota": firstQuota(),
		"first-job":   firstJob(),
		"why":         why(),
		"take-back":   takeBack(moments),
		"dashboard":   panels,
		"observe":     observed(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".svg"), p.File(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// moment of a story.
type moment struct {
	after time.Duration
	// event that has just happened.
	event string
	tree  *draw.Tree
}

// borrowing is the example of docs/concepts.md: what two quotas hold while they borrow and take back.
func borrowing() (moments []moment, c *cluster) {
	c = newCluster("Priority")
	c.quota("pair", "", 0, 10)
	c.quota("first", "pair", 4, 10)
	c.quota("second", "pair", 4, 10)
	const second, minute = time.Second, time.Minute
	c.submit(0, "borrower", "first", 10, 30*minute)
	c.submit(3*minute, "owner", "second", 4, 30*minute)
	c.submit(4*minute, "small", "first", 5, 30*minute)
	c.submit(5*minute, "wide", "second", 5, 30*minute)
	c.submit(6*minute, "last", "first", 1, 30*minute)
	for _, m := range []moment{
		{1 * minute, "`borrower` asks for 10 in `first`. Nobody else asks, so the share of `first` is 10", nil},
		{3*minute + 10*second, "`owner` asks for 4 in `second`, its min. `borrower` is evicted, and its pods end", nil},
		{3*minute + 40*second, "`owner` runs. `borrower` waits: it asks for more than `first` can get", nil},
		{4*minute + 10*second, "`small` asks for 5 in `first`, within its share", nil},
		{5*minute + 10*second, "`wide` asks for 5 in `second` and waits: 9 would leave `first` less than its min", nil},
		{6*minute + 10*second, "`last` asks for 1 in `first`. Nobody can use the last core within a share: a loan", nil},
	} {
		c.until(m.after)
		m.tree = c.tree("")
		moments = append(moments, m)
	}
	return moments, c
}

// BorrowingTable has the amounts of the example, as Markdown.
func BorrowingTable() string {
	var b strings.Builder
	b.WriteString("| time | event | share of `first` | held | share of `second` | held |\n|---|---|---|---|---|---|\n")
	moments, _ := borrowing()
	for _, m := range moments {
		fmt.Fprintf(&b, "| %s | %s ", noon.Add(m.after).Format("15:04:05"), m.event)
		for _, l := range m.tree.Levels[1:] {
			held := fmt.Sprintf("%g", l.Used+l.Reserved)
			if l.Leaving > 0 {
				held += ", evicted"
			}
			fmt.Fprintf(&b, "| %g | %s ", l.Share, held)
		}
		b.WriteString("|\n")
	}
	return b.String()
}

func takeBack(moments []moment) *draw.Picture {
	titles := []string{
		"1. first has borrowed all that second does not use", "2. second takes back its min: the borrower is evicted",
		"3. second has its min, and the borrower waits",
	}
	trees := make([]*draw.Tree, len(titles))
	for i := range trees {
		trees[i] = moments[i].tree
		trees[i].Title = titles[i]
	}
	return draw.Trees("Cores of two quotas while one takes back its min", trees...)
}

// firstQuota is the quota of docs/operators/quotas.md with its first job.
func firstQuota() *draw.Picture {
	c := newCluster("Priority")
	c.quota("pair", "", 0, 10)
	c.quota("first", "pair", 4, 10)
	c.quota("second", "pair", 4, 10)
	c.submit(0, "train", "first", 6, time.Hour)
	c.until(time.Minute)
	t := c.tree("Cores of two quotas, of which first has a job")
	return t.Draw()
}

// firstJob is job/train of docs/quickstart.md.
func firstJob() *draw.Picture {
	c := newCluster("Block")
	c.quota("cluster", "", 0, 1000)
	c.quota("team-research", "cluster", 24, 24)
	c.submit(0, "fill", "team-research", 24, 40*time.Second)
	c.submit(10*time.Second, "train", "team-research", 8, 20*time.Second)
	c.until(5 * time.Minute)
	return c.life("train", "The first job, by the cause of its wait")
}

// why has a job that waits behind another one, then for quota, and then again since a min is taken back.
func why() *draw.Picture {
	c := newCluster("Block")
	c.quota("pair", "", 0, 10)
	c.quota("first", "pair", 4, 10)
	c.quota("second", "pair", 4, 10)
	c.submit(0, "before", "first", 8, 6*time.Minute)
	c.submit(time.Minute, "head", "first", 4, 5*time.Minute)
	c.submit(2*time.Minute, "train", "first", 7, 20*time.Minute)
	c.submit(16*time.Minute, "owner", "second", 4, 9*time.Minute)
	c.until(time.Hour)
	return c.life("train", "One job, by the cause of its wait")
}

// observed has a job that runs although the queue would have it wait for another one.
func observed() *draw.Picture {
	c := newCluster("Block")
	c.quota("cluster", "", 0, 100)
	c.quota("team", "cluster", 10, 10)
	c.observe(0, "before", "team", 8, 6*time.Minute)
	c.observe(time.Minute, "train", "team", 4, 8*time.Minute)
	c.until(time.Hour)
	return c.life("train", "An observed job runs, while the queue tells for how long it would wait")
}

// life of a job as a timeline.
func (c *cluster) life(name, title string) *draw.Picture {
	j := c.order[slices.IndexFunc(c.order, func(j *job) bool { return j.Consumer.Name == name })]
	t := draw.Timeline{Title: title, Spans: j.spans, Events: j.marks}
	return t.Draw()
}
