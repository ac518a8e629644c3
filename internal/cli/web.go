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

package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/page"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/story"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web"
)

// mostTold units ahead, holders, and pods without a job are in the story of a job on the page.
const mostTold = 5

// Plugin is the rest of the plugin, for the page.
func Plugin() page.Plugin {
	return page.Plugin{
		Tell: func(ctx context.Context, r *answers.Reader, u *v1alpha1.QueueUnit) *screen.Story {
			return story.Of(ctx, r, u, mostTold)
		},
		Root: func(streams genericiooptions.IOStreams) *cobra.Command { return Command(streams) },
	}
}

// Page is what the command "web" serves, with the rights of a kubeconfig, at a free port.
func Page(ctx context.Context, kubeconfig string) (*web.Local, error) {
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &kubeconfig
	o := &page.Options{Flags: flags, Plugin: Plugin(), Same: []string{"--kubeconfig=" + kubeconfig}}
	o.AddFlags((&cobra.Command{}).Flags())
	return o.Listen(ctx)
}
