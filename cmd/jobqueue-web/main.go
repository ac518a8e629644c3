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

// Command jobqueue-web serves the page of the job queue in a cluster, to many people. This package has only the wiring:
// the server is in internal/web, and its flags are in internal/cli/webserver.
package main

import (
	"flag"
	"fmt"
	"os"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/webserver"
)

func main() {
	ctrl.SetLogger(klog.NewKlogr())
	command := webserver.Command(cli.Plugin())
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logging)
	command.Flags().AddGoFlag(logging.Lookup("v"))
	err := command.ExecuteContext(ctrl.SetupSignalHandler())
	klog.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jobqueue-web:", err)
		os.Exit(1)
	}
}
