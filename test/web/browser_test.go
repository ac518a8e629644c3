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

// Package web tests the page in a browser: a headless Chromium of the distribution, if there is one.
package web

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/internal/web"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
)

// patience bounds the time for one condition. The conditions of the design are shorter where a test says so.
const patience = 20 * time.Second

// browsers of distributions, the smallest first.
var browsers = []string{"chromium-headless-shell", "chromium", "chromium-browser"}

// browser is a context of chromedp.
type browser struct{ context.Context }

// newBrowser starts a browser, or skips the test. JOBQUEUE_BROWSER=required makes a missing one a failure.
func newBrowser(t *testing.T) browser {
	t.Helper()
	for _, name := range browsers {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
			chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"))
		allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
		t.Cleanup(stop)
		ctx, cancel := chromedp.NewContext(allocator)
		t.Cleanup(cancel)
		require.NoError(t, chromedp.Do(ctx))
		return browser{ctx}
	}
	if os.Getenv("JOBQUEUE_BROWSER") == "required" {
		t.Fatalf("no browser: none of %s is on the PATH", strings.Join(browsers, ", "))
	}
	t.Skipf("no browser: none of %s is on the PATH", strings.Join(browsers, ", "))
	return browser{}
}

// tab is an open page, and what the browser complained of.
type tab struct {
	*testing.T
	ctx        context.Context
	base       string
	complaints chan string
}

// serve starts the page of a source and returns its URL with the token. The clock is that of the world.
func serve(t *testing.T, source facts.Source, c clock.WithTicker) string {
	t.Helper()
	url, _ := start(t, source, c)
	return url
}

// start returns also what ends the page.
func start(t *testing.T, source facts.Source, c clock.WithTicker) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	local, err := web.Listen(ctx, "127.0.0.1:0", c, source)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- local.Serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-served)
	})
	t.Cleanup(stop)
	return local.URL(), stop
}

// newTab has cookies of its own.
func newTab(t *testing.T, in browser) context.Context {
	t.Helper()
	ctx, cancel := chromedp.NewContext(in, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx))
	return ctx
}

// open enters with the token. Complaints of the entrance do not count.
func open(t *testing.T, in browser, url string) *tab {
	t.Helper()
	x := &tab{
		T: t, ctx: newTab(t, in), base: url[:strings.Index(url, "/#")], complaints: make(chan string, 100),
	}
	console := chromedp.Console(x.ctx)
	go func() {
		for message, err := range console {
			if err != nil {
				return
			}
			x.complain(message.Text)
		}
	}()
	x.do(chromedp.Navigate(url))
	x.until(`document.querySelector('nav[aria-label=Pages]') !== null`)
	x.heard()
	return x
}

func (x *tab) complain(text string) {
	select {
	case x.complaints <- text:
	default:
	}
}

// heard are the complaints since the last call.
func (x *tab) heard() (all []string) {
	for {
		select {
		case text := <-x.complaints:
			all = append(all, text)
		default:
			return all
		}
	}
}

func (x *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.ctx, patience)
	defer cancel()
	require.NoError(x, chromedp.Do(ctx, actions...))
}

func get[T any](x *tab, action chromedp.Action[T]) T {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	require.NoError(x, err)
	return value
}

func evaluate[T any](x *tab, script string) T {
	x.Helper()
	return get(x, chromedp.Evaluate[T](script))
}

// at goes to a path.
func (x *tab) at(path string) {
	x.Helper()
	x.do(chromedp.Navigate(x.base + path))
}

// until waits for a condition in the page, and says how long that took.
func (x *tab) until(condition string) time.Duration {
	x.Helper()
	begin := time.Now()
	require.EventuallyWithT(x, func(c *assert.CollectT) {
		is, err := chromedp.Run(x.ctx, chromedp.Evaluate[bool](condition)) // fails while another page is loaded
		if assert.NoError(c, err) {
			assert.True(c, is, condition)
		}
	}, patience, 20*time.Millisecond)
	return time.Since(begin)
}

func (x *tab) text(selector string) string {
	x.Helper()
	return evaluate[string](x, "document.querySelector("+strconv.Quote(selector)+").innerText")
}

// size of the window in CSS pixels, and colours.
func (x *tab) size(width, height int64, scale float64, scheme string) {
	x.Helper()
	x.do(
		func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
				Width: width, Height: height, DeviceScaleFactor: scale,
			})
			return chromedp.Void{}, err
		},
		func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
				},
			})
			return chromedp.Void{}, err
		})
}

// ahead sets the browser's clock forward, for documents that are loaded from now on.
func (x *tab) ahead(by time.Duration) {
	x.Helper()
	script := fmt.Sprintf(`(() => { const Real = Date, by = %d; globalThis.Date = class extends Real {
		constructor(...of) { if (of.length) super(...of); else super(Real.now() + by) }
		static now() { return Real.now() + by } } })()`, by.Milliseconds())
	x.do(func(ctx context.Context, _ *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return chromedp.Void{}, err
	})
}

// picture writes what a person sees of the whole page, with 256 colours.
func (x *tab) picture(file string) {
	x.Helper()
	full, err := png.Decode(bytes.NewReader(get(x, chromedp.FullScreenshot(100))))
	require.NoError(x, err)
	seen := map[color.Color]int{}
	for at := range full.Bounds().Dx() * full.Bounds().Dy() {
		seen[full.At(at%full.Bounds().Dx(), at/full.Bounds().Dx())]++
	}
	colours := slices.SortedFunc(maps.Keys(seen), func(a, b color.Color) int { return cmp.Compare(seen[b], seen[a]) })
	few := image.NewPaletted(full.Bounds(), colours[:min(len(colours), 256)])
	draw.Draw(few, few.Bounds(), full, image.Point{}, draw.Src)
	var out bytes.Buffer
	require.NoError(x, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few))
	require.NoError(x, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(x, os.WriteFile(file, out.Bytes(), 0o644))
}
