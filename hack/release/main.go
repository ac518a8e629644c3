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

// Command release writes the files of a release other than images and chart. These are the archives of the command-line
// programs, the krew manifest, the release notes, the provenance of all programs, and the checksums. The same commit
// must give the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// pluginName is the program that krew installs; migration is for the move from another system.
const (
	pluginName = "kubectl-jobqueue"
	migration  = "jobqueue-migrate"
)

// platforms of the programs, as GOOS/GOARCH.
const platforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

func main() {
	version := flag.String("version", "", "version of the release, such as v0.3.0")
	out := flag.String("out", "", "directory to write to; files that are there are added to the checksums")
	url := flag.String("url", "https://github.com/koord-jobqueue/koord-jobqueue/releases/download",
		"where releases can be downloaded; the krew manifest names it")
	changes := flag.String("changes", "CHANGELOG.md", "changelog that has a heading of the version")
	images := flag.String("images", "", "directory of the programs of the images, for the provenance")
	onto := flag.String("platforms", platforms, "platforms of the command-line programs, separated by commas")
	commit := flag.String("commit", "", "commit of the release, for the provenance")
	flag.Parse()
	from := Provenance{Version: *version, Commit: *commit}
	if err := release(&from, strings.Split(*onto, ","), *changes, *images, *out, *url); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var isVersion = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)

func release(from *Provenance, onto []string, changelog, images, out, url string) error {
	version := from.Version
	if !isVersion.MatchString(version) {
		return fmt.Errorf("-version: want one such as v0.3.0, have %q", version)
	}
	changes, err := os.ReadFile(changelog)
	if err != nil {
		return err
	}
	notes, err := section(string(changes), version)
	if err != nil {
		return err
	}
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	if err := from.addDirectory(images); err != nil {
		return err
	}
	krew := plugin(version)
	for _, platform := range onto {
		for _, program := range []string{pluginName, migration} {
			built, err := build(version, platform, program)
			if err != nil {
				return err
			}
			if err := from.add(program, built); err != nil {
				return err
			}
			bin, file, packed, err := pack(platform, program, built, licence)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(out, file), packed, 0o644); err != nil {
				return err
			}
			if program == pluginName {
				krew.add(platform, bin, url+"/"+version+"/"+file, packed)
			}
			fmt.Println(file)
		}
	}
	manifest, err := yaml.Marshal(krew)
	if err != nil {
		return err
	}
	return describe(from, out, manifest, notes)
}

// describe writes what is about the programs: the manifest of krew, the notes, the provenance and the checksums.
func describe(from *Provenance, out string, manifest []byte, notes string) error {
	if err := os.WriteFile(filepath.Join(out, "jobqueue.yaml"), manifest, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "NOTES.md"), []byte(notes), 0o644); err != nil {
		return err
	}
	if err := from.write(out); err != nil {
		return err
	}
	return checksums(out)
}

// section is the text below the heading of a version in a changelog.
func section(changes, version string) (string, error) {
	_, rest, found := strings.Cut("\n"+changes, "\n## "+version+"\n")
	if !found {
		return "", fmt.Errorf("the changelog has no heading %q: rename the heading Unreleased", "## "+version)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return strings.TrimSpace(text) + "\n", nil
}

// pack returns the name of a program on the platform, the name of its archive, and the archive.
func pack(platform, program string, built, licence []byte) (bin, file string, packed []byte, err error) {
	bin = program
	if strings.HasPrefix(platform, "windows/") {
		bin += ".exe"
	}
	file = program + "_" + strings.ReplaceAll(platform, "/", "_") + ".tar.gz"
	packed, err = archive(map[string][]byte{bin: built, "LICENSE": licence})
	return bin, file, packed, err
}

func build(version, platform, name string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program := filepath.Join(dir, "program")
	goos, goarch, _ := strings.Cut(platform, "/")
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -X main.version="+version, "-o", program, "./cmd/"+name)
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", platform, err)
	}
	return os.ReadFile(program)
}

// archive packs files in the order of their names, without times and owners.
func archive(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := packed.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}); err != nil {
			return nil, err
		}
		if _, err := packed.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := packed.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// krewPlugin is the manifest by which krew installs the plugin.
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector map[string]map[string]string `json:"selector"`
	URI      string                       `json:"uri"`
	SHA256   string                       `json:"sha256"`
	Bin      string                       `json:"bin"`
}

func plugin(version string) *krewPlugin {
	return &krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "jobqueue"},
		Spec: krewSpec{
			Version: version, Homepage: "https://github.com/koord-jobqueue/koord-jobqueue",
			ShortDescription: "Show which jobs wait for quota, and why",
			Description: "Lists jobs of the queue in koord-scheduler, explains why a job waits, submits, holds and moves " +
				"jobs,\n" +
				"drains queues and examines the installation.\n",
		},
	}
}

func (k *krewPlugin) add(platform, bin, uri string, packed []byte) {
	goos, goarch, _ := strings.Cut(platform, "/")
	sum := sha256.Sum256(packed)
	k.Spec.Platforms = append(k.Spec.Platforms, krewPlatform{
		Selector: map[string]map[string]string{"matchLabels": {"os": goos, "arch": goarch}},
		URI:      uri, SHA256: hex.EncodeToString(sum[:]), Bin: bin,
	})
}

// checksums writes the SHA-256 of every file of the directory to SHA256SUMS, as sha256sum does.
func checksums(directory string) error {
	const sums = "SHA256SUMS"
	entries, err := os.ReadDir(directory) // in the order of their names
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == sums {
			continue
		}
		file, err := os.Open(filepath.Join(directory, entry.Name()))
		if err != nil {
			return err
		}
		hash := sha256.New()
		_, err = io.Copy(hash, file)
		_ = file.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", hash.Sum(nil), entry.Name())
	}
	return os.WriteFile(filepath.Join(directory, sums), []byte(text.String()), 0o644)
}
