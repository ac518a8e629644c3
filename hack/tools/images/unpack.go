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
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// unpack writes the program of an OCI archive for this machine's platform to a directory.
func unpack(archive, program, to string) error {
	dir, err := os.MkdirTemp("", "unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	data, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer data.Close()
	if err := each(data, func(name string, content io.Reader) error {
		return write(filepath.Join(dir, filepath.FromSlash(name)), 0o644, content)
	}); err != nil {
		return err
	}
	image, err := imageIn(dir)
	if err != nil {
		return err
	}
	found := false
	content := mutate.Extract(image)
	defer content.Close()
	err = each(content, func(name string, content io.Reader) error {
		if name != program {
			return nil
		}
		found = true
		return write(filepath.Join(to, program), 0o755, content)
	})
	if err == nil && !found {
		return fmt.Errorf("the image has no file %s", program)
	}
	return err
}

// imageIn is the image for this machine in an OCI layout that holds one index.
func imageIn(dir string) (v1.Image, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return nil, err
	}
	top, err := path.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%d indexes, want one", len(manifest.Manifests))
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	here := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	manifest, err = index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		if match.Platforms(here)(d) {
			return index.Image(d.Digest)
		}
	}
	return nil, fmt.Errorf("no image for %s", here)
}

// each calls do with every file of a tar stream.
func each(stream io.Reader, do func(name string, content io.Reader) error) error {
	r := tar.NewReader(stream)
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(header.Name) {
			return fmt.Errorf("%q leads out of the archive", header.Name)
		}
		if err := do(header.Name, r); err != nil {
			return err
		}
	}
}

func write(path string, mode os.FileMode, content io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	return f.Close()
}
