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

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	kubeschedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/plugin/jobqueue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/plugin/preflight"
)

// errTerminated is returned when the process is asked to end while it waits.
var errTerminated = errors.New("asked to terminate while waiting")

// exitCode is that of a process that the signal has ended, as its supervisor expects, or 1.
func exitCode(err error) int {
	if errors.Is(err, errTerminated) {
		return 128 + int(syscall.SIGTERM)
	}
	return 1
}

// prepare runs after the flags are parsed and before the scheduler is built. It finds the profile that enables
// JobQueue, and waits for the conditions without which the scheduler would silently hang.
func prepare(cmd *cobra.Command, wiring *jobqueue.Wiring) error {
	verflag.PrintAndExitIfRequested()
	cfg, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	setup, err := preflight.Inspect(cfg, flagValue(cmd, "enable-network-topology-manager") == "true")
	if err != nil {
		return err
	}
	if setup.Profile != "" {
		wiring.Enable(setup.Profile, setup.PluginConfig)
	}
	if setup.Args != nil {
		if err := wiring.Validate(setup.Args); err != nil {
			return fmt.Errorf("profile %q: %w", setup.Profile, err)
		}
	}
	if cfg.LeaderElection.LeaderElect {
		wiring.Elected(cfg.LeaderElection.RenewDeadline.Duration)
	}
	if flagValue(cmd, "write-config-to") != "" {
		// The scheduler writes the file and ends. It needs nothing for that.
		return nil
	}
	restConfig, err := restConfigFor(cmd, cfg)
	if err != nil {
		return err
	}
	checker, err := preflight.NewChecker(setup, restConfig, os.Stderr)
	if err != nil {
		return err
	}
	// The scheduler installs its own handling of these signals when it is built; until then they end the waiting.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	begin := checker.Clock.Now()
	if err := checker.Wait(ctx); err != nil {
		return fmt.Errorf("%w: %w", errTerminated, err)
	}
	klog.FromContext(ctx).Info("The API server answers and has all that is needed", "waited", checker.Clock.Since(begin))
	return nil
}

// loadConfig reads the configuration as the scheduler itself will.
func loadConfig(cmd *cobra.Command) (*kubeschedulerconfig.KubeSchedulerConfiguration, error) {
	if file := flagValue(cmd, "config"); file != "" {
		return scheduleroptions.LoadConfigFromFile(klog.Background(), file)
	}
	cfg, err := latest.Default()
	if err != nil {
		return nil, err
	}
	cfg.ClientConnection.Kubeconfig = flagValue(cmd, "kubeconfig")
	return cfg, nil
}

func restConfigFor(cmd *cobra.Command, cfg *kubeschedulerconfig.KubeSchedulerConfiguration) (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags(flagValue(cmd, "master"), cfg.ClientConnection.Kubeconfig)
}

func flagValue(cmd *cobra.Command, name string) string {
	flag := cmd.Flags().Lookup(name)
	if flag == nil {
		return ""
	}
	return flag.Value.String()
}
