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

// Package scheduler is Koordinator's scheduler with the plugin JobQueue, and with all plugins, flags and settings of
// Koordinator. If the configuration does not enable JobQueue, it behaves as Koordinator's scheduler. To add policies or
// checks, build a scheduler with options: see examples/custom-policy.
package scheduler

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/component-base/logs"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/koordinator-sh/koordinator/cmd/koord-scheduler/app"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/coscheduling"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/defaultprebind"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/deviceshare"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/loadaware"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/nodenumaresource"
	noderesourcesfitplus "github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/noderesourcefitplus"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/reservation"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/scarceresourceavoidance"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/schedulinghint"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/plugin/jobqueue"

	// Metrics of client-go, and Koordinator's plugin arguments in the scheduler's scheme.
	_ "github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config/scheme"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
)

// stock returns the plugins of koord-scheduler v1.8.0.
func stock() map[string]frameworkruntime.PluginFactory {
	return map[string]frameworkruntime.PluginFactory{
		loadaware.Name:               loadaware.New,
		nodenumaresource.Name:        nodenumaresource.New,
		reservation.Name:             reservation.New,
		coscheduling.Name:            coscheduling.New,
		deviceshare.Name:             deviceshare.New,
		elasticquota.Name:            elasticquota.New,
		defaultprebind.Name:          newPreBind,
		noderesourcesfitplus.Name:    noderesourcesfitplus.New,
		scarceresourceavoidance.Name: scarceresourceavoidance.New,
		schedulinghint.Name:          schedulinghint.New,
	}
}

// NewCommand returns the command of the scheduler with these extensions. Call it once: Koordinator has global state.
func NewCommand(extensions ...jobqueue.Option) (*cobra.Command, error) {
	wiring, err := jobqueue.NewWiring(extensions...)
	if err != nil {
		return nil, err
	}
	plugins := stock()
	for name, factory := range wiring.Plugins() {
		plugins[name] = factory
	}
	options := make([]app.Option, 0, len(plugins))
	for name, factory := range plugins {
		options = append(options, app.WithPlugin(name, factory))
	}
	command := app.NewSchedulerCommand(append(options, withoutMinorless)...)
	command.PreRunE = func(cmd *cobra.Command, _ []string) error {
		// From here on an error is not one of usage.
		cmd.SilenceUsage = true
		return prepare(cmd, wiring)
	}
	return command, nil
}

// Run is the main function of a scheduler with these extensions. It returns the exit code of the process.
func Run(extensions ...jobqueue.Option) int {
	command, err := NewCommand(extensions...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return exitCode(err)
	}
	logs.InitLogs()
	defer logs.FlushLogs()
	if err := command.Execute(); err != nil {
		return exitCode(err)
	}
	return 0
}
