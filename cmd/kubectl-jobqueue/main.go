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

// Command kubectl-jobqueue is a plugin of kubectl. Put it on the PATH and run "kubectl jobqueue". The commands are in
// internal/cli.
package main

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli"
)

// version is that of the release; its build sets it.
var version = "devel"

func main() {
	command := cli.Command(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	command.Version = version
	if err := command.ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		code := 1
		if exit := (interface{ ExitCode() int })(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		}
		os.Exit(code)
	}
}
