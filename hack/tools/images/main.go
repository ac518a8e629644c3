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

// Command images builds the container images without Docker, and can push them.
//
// An image holds one program and its bill of materials, and has no base image. The same commit must give the same
// bytes, so that anybody can build an image again and compare its digest.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

type options struct {
	prefix, tag, out, platforms string
	unpack                      string
	push, insecure              bool
}

func main() {
	o := options{}
	flag.StringVar(&o.prefix, "prefix", "", "registry and path, such as registry.example.com/queue; needed to push")
	flag.StringVar(&o.tag, "tag", "latest", "tag of the images")
	flag.StringVar(&o.out, "out", "_artifacts/images", "directory for the OCI archives NAME.tar and the files NAME.digest")
	flag.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64", "platforms, separated by commas")
	flag.BoolVar(&o.push, "push", false, "push the images; credentials are those of docker login or podman login")
	flag.StringVar(&o.unpack, "unpack", "",
		"directory to write the programs of the archives for this machine to; builds nothing")
	flag.BoolVar(&o.insecure, "insecure", false, "push over plain HTTP")
	flag.Parse()
	if err := run(o, []string{"koord-scheduler", "jobqueue-controller", "jobqueue-web"}); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(o options, programs []string) error {
	if o.push && o.prefix == "" {
		return fmt.Errorf("-push needs -prefix: the registry and path of your own")
	}
	if o.unpack != "" {
		for _, program := range programs {
			if err := unpack(filepath.Join(o.out, program+".tar"), program, o.unpack); err != nil {
				return fmt.Errorf("unpack %s: %w", program, err)
			}
		}
		return nil
	}
	platforms, err := parsePlatforms(o.platforms)
	if err != nil {
		return err
	}
	source, err := readSource()
	if err != nil {
		return err
	}
	for _, program := range programs {
		began := time.Now()
		index, err := build(program, o.out, source, platforms)
		if err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		archive := filepath.Join(o.out, program+".tar")
		if err := writeArchive(archive, index, nameOf(o, program)); err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		if err := os.WriteFile(filepath.Join(o.out, program+".digest"), []byte(digest.String()+"\n"), 0o644); err != nil {
			return err
		}
		fmt.Printf("%s %s %s, %.0fs\n", archive, digest, o.platforms, time.Since(began).Seconds())
		if o.push {
			if err := push(o, program, index); err != nil {
				return fmt.Errorf("push %s: %w", nameOf(o, program), err)
			}
			fmt.Printf("pushed %s@%s\n", nameOf(o, program), digest)
		}
	}
	return nil
}

// nameOf is the name of an image in the registry, with its tag.
func nameOf(o options, program string) string {
	return strings.TrimPrefix(strings.TrimSuffix(o.prefix, "/")+"/", "/") + program + ":" + o.tag
}

func push(o options, program string, index v1.ImageIndex) error {
	var strictness []name.Option
	if o.insecure {
		strictness = append(strictness, name.Insecure)
	}
	ref, err := name.ParseReference(nameOf(o, program), strictness...)
	if err != nil {
		return err
	}
	return remote.WriteIndex(ref, index, remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

func parsePlatforms(list string) ([]v1.Platform, error) {
	var platforms []v1.Platform
	for _, s := range strings.Split(list, ",") {
		p, err := v1.ParsePlatform(s)
		if err != nil || p.OS != "linux" || p.Architecture == "" {
			return nil, fmt.Errorf("platform %q: want linux/ARCHITECTURE", s)
		}
		platforms = append(platforms, *p)
	}
	return platforms, nil
}

// source says of which commit an image is. Its time is that of all files in the image.
type source struct {
	root, revision string
	time           time.Time
}

// readSource asks git. A tree with changes is marked as dirty, since nobody can build it again.
func readSource() (source, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", args...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return source{}, err
	}
	revision, err := git("describe", "--always", "--dirty", "--abbrev=40", "--match=v[0-9]*")
	if err != nil {
		return source{}, err
	}
	stamp, err := git("log", "-1", "--format=%ct")
	if err != nil {
		return source{}, err
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	return source{root: root, revision: revision, time: time.Unix(seconds, 0).UTC()}, err
}
