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

// Package program has the common main function of the programs that test the system.
package program

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// interrupted is the exit code after Ctrl-C, as of a shell.
const interrupted = 130

// Main runs a program and ends the process. The code is 1 if the program found a fault, 2 if the program itself failed,
// and 130 after a signal, which ends the context.
func Main(run func(ctx context.Context) (found bool, err error)) {
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends this process at once; the kernel then ends its children, paused or not.
	context.AfterFunc(ctx, stop)
	found, err := run(ctx)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "interrupted; every process that was started has ended")
		os.Exit(interrupted)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	case found:
		os.Exit(1)
	}
}
