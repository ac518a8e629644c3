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
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// provenanceFile has the Provenance of a release.
const provenanceFile = "provenance.json"

// Provenance says what the programs of a release are made of, as the Go linker has written it into them.
type Provenance struct {
	Version  string    `json:"version"`
	Commit   string    `json:"commit"`
	Programs []Program `json:"programs"`
}

// Program is one program for one platform.
type Program struct {
	Name     string `json:"name"`
	Platform string `json:"platform"`
	SHA256   string `json:"sha256"`
	// Go is the version of the toolchain.
	Go      string   `json:"go"`
	Modules []Module `json:"modules"`
}

// Module is linked into a program. Sum is that of go.sum, of the replacement if there is one.
type Module struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Sum     string `json:"sum"`
}

// addDirectory adds each file of a directory, which is a program; "" has none.
func (p *Provenance) addDirectory(directory string) error {
	if directory == "" {
		return nil
	}
	entries, err := os.ReadDir(directory) // in the order of their names
	if err != nil {
		return err
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(directory, entry.Name()))
		if err != nil {
			return err
		}
		if err := p.add(entry.Name(), content); err != nil {
			return err
		}
	}
	return nil
}

func (p *Provenance) add(name string, content []byte) error {
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	sum := sha256.Sum256(content)
	program := Program{
		Name: name, Platform: settings["GOOS"] + "/" + settings["GOARCH"], SHA256: hex.EncodeToString(sum[:]),
		Go: info.GoVersion,
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		program.Modules = append(program.Modules, Module{Name: module.Path, Version: module.Version, Sum: module.Sum})
	}
	p.Programs = append(p.Programs, program)
	return nil
}

func (p *Provenance) write(directory string) error {
	text, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, provenanceFile), append(text, '\n'), 0o644)
}
