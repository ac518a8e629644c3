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
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli"
)

const flagColumns = 110

// commandList has the help of each command of kubectl jobqueue, by the groups of the help.
func commandList() string {
	root := cli.Command(genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard})
	var b strings.Builder
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "## %s\n\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				writeCommand(&b, c)
			}
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func writeCommand(b *strings.Builder, c *cobra.Command) {
	if c.Runnable() {
		fmt.Fprintf(b, "### %s\n\n", strings.TrimPrefix(c.CommandPath(), "kubectl jobqueue "))
		fmt.Fprintf(b, "%s\n\n```\n%s\n", paragraphs(cmp.Or(c.Long, c.Short+".")), c.UseLine())
		if c.Example != "" {
			fmt.Fprintf(b, "\n%s\n", strings.TrimRight(c.Example, "\n"))
		}
		if flags := ownFlags(c); flags.HasFlags() {
			fmt.Fprintf(b, "\n%s", flags.FlagUsagesWrapped(flagColumns))
		}
		b.WriteString("```\n\n")
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			writeCommand(b, below)
		}
	}
}

// paragraphs of a help text. Indented lines are a block of their own.
func paragraphs(text string) string {
	var b strings.Builder
	block := false
	for line := range strings.Lines(strings.TrimSpace(text) + "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != block {
			b.WriteString(map[bool]string{true: "\n```\n", false: "```\n\n"}[indented])
			block = indented
		}
		b.WriteString(line)
	}
	if block {
		b.WriteString("```\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// ownFlags are those of the command without the ones of kubectl.
func ownFlags(c *cobra.Command) *pflag.FlagSet {
	own := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	own.SortFlags = true
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			own.AddFlag(f)
		}
	})
	return own
}
