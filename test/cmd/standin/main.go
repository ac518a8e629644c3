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

// Command standin plays operators that tests cannot have (see package test/harness/standin). Install their CRDs from
// the directory crds of that package first. For LeaderWorkerSet run the StatefulSet controller as well.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/standin"
)

func main() {
	set := flag.NewFlagSet("standin", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", "", "file that says where the API server is")
	kinds := set.String("kinds", strings.Join(standin.Kinds(), ","), "what to play, separated by commas")
	probes := set.String("health-probe-bind-address", "0", "where to answer /healthz and /readyz; 0 for nowhere")
	klog.InitFlags(set)
	_ = set.Parse(os.Args[1:])
	if err := run(*kubeconfig, strings.Split(*kinds, ","), *probes); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(kubeconfig string, kinds []string, probes string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	mgr, err := standin.NewManager(config, kinds, probes)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
