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

// Package page has the command "kubectl jobqueue web". The page reads with the functions of the other commands, and its
// buttons run them. Package webserver uses the same source.
package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/facts"
)

// Requests of the page in a second, and at once. An open page asks again while somebody looks.
const (
	requests = 50
	burst    = 100
)

// Plugin is the rest of the plugin.
type Plugin struct {
	// Tell is the story of a unit, as "why" tells it.
	Tell func(ctx context.Context, r *answers.Reader, u *v1alpha1.QueueUnit) *screen.Story
	// Root is the plugin with all its commands.
	Root func(streams genericiooptions.IOStreams) *cobra.Command
}

// Options of the command. Flags are those of the connection.
type Options struct {
	Flags  *genericclioptions.ConfigFlags
	Plugin Plugin
	// Same are the flags of the connection as arguments, for the commands of buttons.
	Same    []string
	address string
	names   doctor.Names
}

// Command is the command.
func Command(flags *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, plugin Plugin) *cobra.Command {
	o := &Options{Flags: flags, Plugin: plugin}
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Show queues, quotas and jobs in a browser",
		Long: `web serves a page on this machine until it is interrupted, and prints its URL. The page shows the tree of
quotas, queues, jobs with a timeline and why they wait, preemptions, history, and the health of the installation. It
follows changes. Every request has the rights of the caller.

The URL has a token behind the sign #, which is valid until the command ends. Without the token nobody is let in.`,
		Example: `  kubectl jobqueue web
  kubectl jobqueue web --address 127.0.0.1:8080`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Same = given(cmd.InheritedFlags())
			local, err := o.Listen(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(streams.Out, "Open %s\nCtrl-C ends the page.\n", local.URL()); err != nil {
				return err
			}
			return local.Serve(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

// AddFlags adds those of the command, and sets what they are without one.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.address, "address", "127.0.0.1:0", "address of the loopback; port 0 chooses a free port")
	o.names.AddFlags(fs)
}

// given are the flags that were given, as arguments.
func given(flags *pflag.FlagSet) (args []string) {
	flags.Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, value := range list.GetSlice() {
				args = append(args, "--"+f.Name+"="+value)
			}
			return
		}
		args = append(args, "--"+f.Name+"="+f.Value.String())
	})
	return args
}

// Listen returns a page that waits to be served.
func (o *Options) Listen(ctx context.Context) (*web.Local, error) {
	config, err := o.Flags.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	namespace, _, err := o.Flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	source, err := o.Plugin.Source(config, namespace, o.names, o.Same)
	if err != nil {
		return nil, err
	}
	return web.Listen(ctx, o.address, clock.RealClock{}, source)
}

// Source has the rights of a client configuration, whose limits of requests it sets. The namespace is that of the
// caller, and empty if nobody knows. Arguments have the commands of buttons use the same connection.
func (p *Plugin) Source(
	config *rest.Config, namespace string, names doctor.Names, arguments []string,
) (*facts.Cluster, error) {
	config.QPS, config.Burst = requests, burst
	reader, err := answers.New(config)
	if err != nil {
		return nil, err
	}
	return &facts.Cluster{
		Reader: reader, Of: namespace,
		Tell: func(ctx context.Context, u *v1alpha1.QueueUnit) *screen.Story { return p.Tell(ctx, reader, u) },
		Examine: func(ctx context.Context) ([]doctor.Finding, error) {
			return doctor.Find(ctx, config, names, clock.RealClock{}.Now())
		},
		Do: func(ctx context.Context, args ...string) (string, error) { return p.do(ctx, arguments, args) },
	}, nil
}

// do runs another command with the arguments of a connection.
func (p *Plugin) do(ctx context.Context, connection, args []string) (string, error) {
	var out, errOut bytes.Buffer
	command := p.Root(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	command.SetArgs(slices.Concat(connection, args))
	err := command.ExecuteContext(ctx)
	if text := strings.TrimSpace(errOut.String()); err == nil && text != "" {
		err = errors.New(text)
	}
	return strings.TrimSpace(out.String()), err
}
