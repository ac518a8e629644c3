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
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// program writes a module with one program, cmd/hello.
func program(t *testing.T) source {
	root := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(root, "cmd/hello"), 0o755))
	check(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module example.com/hello\n\ngo 1.25\n"), 0o644))
	check(t, os.WriteFile(filepath.Join(root, "cmd/hello/main.go"),
		[]byte("package main\n\nfunc main() { println(\"hello\") }\n"), 0o644))
	return source{root: root, revision: "v1.2.3", time: time.Unix(1700000000, 0).UTC()}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, what string, want, got T) {
	t.Helper()
	if want != got {
		t.Errorf("%s: want %v, got %v", what, want, got)
	}
}

// The same commit in another directory gives the same bytes.
func TestImagesAreReproducible(t *testing.T) {
	var archives [2]string
	for i := range archives {
		index, err := build("hello", t.TempDir(), program(t), platforms)
		check(t, err)
		archive := filepath.Join(t.TempDir(), "hello.tar")
		check(t, writeArchive(archive, index, "example.com/hello:v1"))
		data, err := os.ReadFile(archive)
		check(t, err)
		archives[i] = string(data)
	}
	equal(t, "archives", true, archives[0] == archives[1])
}

// A registry gives back what was pushed, under its digest, and the program in it runs.
func TestAPushedImageRuns(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	o := options{prefix: strings.TrimPrefix(server.URL, "http://") + "/queue", tag: "v1.2.3", insecure: true}
	index, err := build("hello", t.TempDir(), program(t), platforms)
	check(t, err)
	check(t, push(o, "hello", index))
	digest, err := index.Digest()
	check(t, err)

	ref, err := name.NewDigest(o.prefix+"/hello@"+digest.String(), name.Insecure)
	check(t, err)
	image, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	check(t, err)
	config, err := image.ConfigFile()
	check(t, err)
	equal(t, "user", user, config.Config.User)
	equal(t, "entrypoint", "/hello", strings.Join(config.Config.Entrypoint, " "))
	equal(t, "revision", "v1.2.3", config.Config.Labels["org.opencontainers.image.revision"])

	files := map[string][]byte{}
	check(t, each(mutate.Extract(image), func(name string, content io.Reader) (err error) {
		files[name], err = io.ReadAll(content)
		return err
	}))
	equal(t, "files", 2, len(files))
	var bill struct {
		Metadata struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name string }
	}
	check(t, json.Unmarshal(files["sbom.cdx.json"], &bill))
	equal(t, "program in the bill", "hello v1.2.3", bill.Metadata.Component.Name+" "+bill.Metadata.Component.Version)
	equal(t, "components", 1, len(bill.Components)) // the standard library

	dir := t.TempDir()
	check(t, writeArchive(filepath.Join(dir, "hello.tar"), index, "hello:v1.2.3"))
	check(t, unpack(filepath.Join(dir, "hello.tar"), "hello", dir))
	unpacked, err := os.ReadFile(filepath.Join(dir, "hello"))
	check(t, err)
	equal(t, "the archive and the registry have one program", true, bytes.Equal(files["hello"], unpacked))
	said, err := exec.Command(filepath.Join(dir, "hello")).CombinedOutput()
	check(t, err)
	equal(t, "output", "hello\n", string(said))
}

func TestAPushNeedsAPrefix(t *testing.T) {
	if err := run(options{push: true, platforms: "linux/amd64"}, nil); err == nil {
		t.Error("no error")
	}
	if err := run(options{platforms: "amd64"}, nil); err == nil {
		t.Error("no error for a platform without an operating system")
	}
}
