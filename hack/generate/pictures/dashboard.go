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
	_ "embed"
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/hack/generate/draw"
)

// answers of the queries of the dashboard about a demo; a test in test/alerts writes them.
//
//go:embed dashboard.json
var answers []byte

// Section of the dashboard is a row of panels.
type Section []Panel

// Panel of the dashboard, with its unit in the words of Grafana.
type Panel struct{ Title, Unit string }

func drawDashboard(sections []Section) (*draw.Picture, error) {
	var data struct {
		Seconds float64
		Panels  [][]struct {
			Name   string
			Points []*float64
		}
	}
	if err := json.Unmarshal(answers, &data); err != nil {
		return nil, err
	}
	c := &draw.Charts{Title: "The dashboard during a demo", Length: time.Duration(data.Seconds * float64(time.Second))}
	units := map[string]string{"percentunit": "%", "s": "s"}
	for _, section := range sections {
		var row []*draw.Chart
		for _, p := range section {
			if len(data.Panels) == 0 {
				return nil, errors.New("dashboard.json lacks a panel: go test -C test/alerts . -golden")
			}
			chart := &draw.Chart{Title: p.Title, Unit: units[p.Unit]}
			for _, l := range data.Panels[0] {
				line := draw.Line{Name: l.Name}
				for _, v := range l.Points {
					if v == nil {
						line.Points = append(line.Points, math.NaN())
					} else {
						line.Points = append(line.Points, *v)
					}
				}
				chart.Lines = append(chart.Lines, line)
			}
			data.Panels = data.Panels[1:]
			if row = append(row, chart); len(row) == 2 {
				c.Rows, row = append(c.Rows, row), nil
			}
		}
		if row != nil {
			c.Rows = append(c.Rows, row)
		}
	}
	return c.Draw(), nil
}
