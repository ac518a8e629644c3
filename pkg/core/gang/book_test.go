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

package gang

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// scene is a book of units, each made after the one before.
type scene struct {
	*Book[*unit.Unit]
	units []*unit.Unit
}

// newScene reads units, one in a text: the key, its own gangs out of x, y and z, and its facts.
func newScene(t *testing.T, texts ...string) *scene {
	t.Helper()
	s := &scene{Book: NewBook(func(u *unit.Unit) *unit.Unit { return u })}
	for i, text := range texts {
		words := strings.Fields(text)
		u := &unit.Unit{Key: words[0], Created: time.Unix(int64(i), 0)}
		u.Gangs, u.GangGroup = words[1], "x,y,z"
		if !strings.Contains(u.Key, "/") {
			u.Key = "ns/" + u.Key
		}
		s.units = append(s.units, u)
		s.SetPresent(u, true)
		for _, word := range words[2:] {
			switch word {
			case "waits":
				s.Join(u)
			case "holds":
				s.SetHolding(u, true)
			case "cleared":
				s.SetCleared(u, true)
			case "checked":
				s.SetChecked(u, true)
			case "again": // a reserved unit is in its first attempt, one that waits has had none
				u.Attempts += 2
			case "first":
				u.Attempts++
			default:
				t.Fatalf("unknown: %s", word)
			}
		}
	}
	return s
}

func (s *scene) end(t *testing.T) {
	t.Helper()
	for _, u := range s.units {
		s.SetPresent(u, false)
		s.SetHolding(u, false)
		s.Part(u)
		s.SetChecked(u, false)
	}
	require.Zero(t, s.Len(), "nothing is left")
}

func keysOf(units []*unit.Unit) string {
	keys := make([]string, 0, len(units))
	for _, u := range units {
		keys = append(keys, strings.TrimPrefix(u.Key, "ns/"))
	}
	return strings.Join(keys, " ")
}

// Members of the last unit of each scene.
func TestMembers(t *testing.T) {
	const notWhole, alone = "not whole", "alone"
	for name, c := range map[string]struct {
		units []string
		want  string
	}{
		"each gang has a unit in line":         {[]string{"c z waits", "b y waits", "a x waits"}, "a b c"},
		"a gang has no unit":                   {[]string{"a x waits", "b y waits"}, notWhole},
		"a gang has a unit out of line":        {[]string{"c z", "b y waits", "a x waits"}, notWhole},
		"out of line, the others came before":  {[]string{"c z", "b y waits again", "a x waits again"}, notWhole},
		"a unit for two gangs":                 {[]string{"b z waits", "a x,y waits"}, "a b"},
		"the first that was made stands for x": {[]string{"d x waits", "c z waits", "b y waits", "a x waits"}, "b c d"},
		"a gang holds quota":                   {[]string{"c z holds", "b y waits", "a x waits"}, "a b"},
		"all others hold quota":                {[]string{"c z holds", "b y holds", "a x waits"}, "a"},
		"all gangs hold quota":                 {[]string{"c x,z holds", "b y holds", "a x waits"}, alone},
		"a gang is over":                       {[]string{"b y waits again", "a x waits again"}, "a b"},
		"over, but a member is new":            {[]string{"b y waits", "a x waits again"}, notWhole},
		"over, but the unit is new": {
			[]string{"c x holds", "b y waits again", "a x waits"}, notWhole,
		},
		"units of another namespace": {[]string{"other/c z waits", "b y waits", "a x waits"}, notWhole},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, c.units...)
			members, together := s.Members(s.units[len(s.units)-1])
			got := keysOf(members)
			switch {
			case !together:
				require.Empty(t, members)
				got = alone
			case len(members) == 0:
				got = notWhole
			}
			require.Equal(t, c.want, got)
			s.end(t)
		})
	}
}

// A unit that has passed its checks waits for each other gang, unless that is over.
func TestMayGo(t *testing.T) {
	for name, c := range map[string]struct {
		units []string
		want  bool
	}{
		"all others are cleared":            {[]string{"c z cleared", "b y cleared", "a x first"}, true},
		"a gang is not":                     {[]string{"c z", "b y cleared", "a x first"}, false},
		"one unit of a gang is enough":      {[]string{"d z", "c z cleared", "b y cleared", "a x first"}, true},
		"its own gangs":                     {[]string{"c z cleared", "a x,y first"}, true},
		"a gang has no unit":                {[]string{"b y cleared", "a x first"}, false},
		"over, and it was admitted before":  {[]string{"b y cleared", "a x again"}, true},
		"there, and it was admitted before": {[]string{"c z", "b y cleared", "a x again"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, c.units...)
			require.Equal(t, c.want, s.MayGo(s.units[len(s.units)-1]))
			s.end(t)
		})
	}
}

// A unit of no gang group waits for nobody, and costs nothing.
func TestNoGangGroup(t *testing.T) {
	s, u := newScene(t), &unit.Unit{Key: "ns/a"}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		s.SetPresent(u, true)
		s.SetHolding(u, true)
		s.SetCleared(u, true)
		s.SetChecked(u, true)
		require.True(t, s.MayGo(u))
	}))
	require.Zero(t, s.Len())
}

// The first unit of a gang is news, and that there is none any more.
func TestNews(t *testing.T) {
	s := newScene(t, "a x", "b x,y")
	a, b := s.units[0], s.units[1]
	for _, set := range []func(*unit.Unit, bool) bool{s.SetHolding, s.SetCleared} {
		require.True(t, set(a, true))
		require.False(t, set(a, true), "it is so")
		require.True(t, set(b, true), "the first of y")
		require.False(t, set(a, false), "b is of x as well")
		require.True(t, set(b, false))
	}
	news := func(u *unit.Unit, is bool) bool {
		_, news := s.SetPresent(u, is)
		return news
	}
	require.False(t, news(a, false))
	require.False(t, news(a, true))
	require.True(t, news(b, false))
	require.True(t, news(a, false), "the last one")
	require.Zero(t, s.Len())
}

// A unit that joins other gangs counts for these alone, and is not cleared as a unit of theirs.
func TestOtherGangs(t *testing.T) {
	s := newScene(t, "a x cleared holds", "b x cleared", "c y,z cleared")
	a, b, former := s.units[0], s.units[1], GroupOf(s.units[0])
	a.GangGroup = "v,w"
	a.Gangs = "v"
	group, news := s.SetPresent(a, true)
	require.Equal(t, former, group)
	require.True(t, news)
	require.False(t, s.MayGo(a))
	require.True(t, s.SetHolding(a, true))
	require.True(t, s.SetCleared(b, false), "a is not of x any more")
	require.False(t, s.MayGo(s.units[2]))
	group, news = s.SetPresent(a, true)
	require.Equal(t, GroupOf(a), group)
	require.False(t, news)
	s.end(t)
}

func TestChecked(t *testing.T) {
	s := newScene(t, "c x checked", "a y checked", "other/b z checked", "b z")
	require.Equal(t, "a c", keysOf(s.Checked("ns x,y,z")))
	s.SetChecked(s.units[1], false)
	require.Equal(t, "c", keysOf(s.Checked("ns x,y,z")))
	require.Empty(t, s.Checked(""))
	s.end(t)
}
