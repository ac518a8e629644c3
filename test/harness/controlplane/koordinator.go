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

package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// koordinatorCRDs are the definitions that koord-scheduler v1.8.0 does not start without, and the one that it
// needs with --enable-network-topology-manager.
var koordinatorCRDs = []string{
	"scheduling.sigs.k8s.io_elasticquotas.yaml",
	"scheduling.sigs.k8s.io_podgroups.yaml",
	"scheduling.koordinator.sh_reservations.yaml",
	"scheduling.koordinator.sh_devices.yaml",
	"scheduling.koordinator.sh_clusternetworktopologies.yaml",
	"slo.koordinator.sh_nodemetrics.yaml",
	"topology.node.k8s.io_noderesourcetopologies.yaml",
}

// ApplyKoordinatorCRDs applies the definitions of Koordinator that the scheduler needs, from its Go module, and
// waits until they are served.
func (c *ControlPlane) ApplyKoordinatorCRDs(ctx context.Context) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/koordinator-sh/koordinator")
	list.Dir = root
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("find the module of Koordinator: %w: %s", err, stderr.String())
	}
	bases := filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "bases")
	var all bytes.Buffer
	for _, name := range koordinatorCRDs {
		content, err := os.ReadFile(filepath.Join(bases, name))
		if err != nil {
			return err
		}
		all.WriteString("---\n")
		all.Write(content)
	}
	return c.Apply(ctx, all.Bytes())
}

// Install applies what a user without Koordinator applies: the definitions of Koordinator, manifests/overlays/fresh,
// and that of AdmissionChecks. The Deployments in it start nothing here, as no controller runs that would make pods of
// them.
func (c *ControlPlane) Install(ctx context.Context) error {
	root, err := RepositoryRoot()
	if err != nil {
		return err
	}
	if err := c.ApplyKoordinatorCRDs(ctx); err != nil {
		return err
	}
	if err := c.ApplyKustomize(ctx, filepath.Join(root, "manifests", "overlays", "fresh")); err != nil {
		return err
	}
	return c.ApplyKustomize(ctx, filepath.Join(root, "manifests", "components", "admission-checks-crd"))
}

// StartInstalled runs one replica of each Deployment of Install, as all share the processors of this machine. It
// returns when the API server passes questions on to the aggregated API.
func (c *ControlPlane) StartInstalled(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig(Admin))
	if err != nil {
		return err
	}
	for name, namespace := range map[string]string{
		"koord-jobqueue-scheduler": "koordinator-system", "jobqueue-controller": "koord-queue",
	} {
		scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		scale.Spec.Replicas = 1
		_, err := client.AppsV1().Deployments(namespace).UpdateScale(ctx, name, scale, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
	}
	if err := c.installAPIService(ctx); err != nil {
		return err
	}
	if err := c.RunDeployments(ctx); err != nil {
		return err
	}
	return c.AwaitVisibility(ctx)
}

// GrantUse lets a namespace use a quota, as docs/operators/tenancy.md says.
func (c *ControlPlane) GrantUse(ctx context.Context, namespace, quota string) error {
	return c.Apply(ctx, fmt.Appendf(nil, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: %[1]s, name: use-%[2]s}
rules:
- {apiGroups: [scheduling.sigs.k8s.io], resources: [elasticquotas], resourceNames: [%[2]s], verbs: [use]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: use-%[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: use-%[2]s}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: default}]
`, namespace, quota))
}

// SchedulerOptions say how koord-scheduler runs. The zero value is the shipped configuration with one replica, without
// the aggregated API.
type SchedulerOptions struct {
	// Name of the replica; "" means Scheduler.
	Name Component
	// Config is the path of a KubeSchedulerConfiguration; "" means scheduler-config.yaml of the repository.
	// A copy is used in which clientConnection.kubeconfig and leaderElection.leaderElect are replaced.
	Config string
	// Mutate, if set, may change that copy further, as decoded YAML.
	Mutate func(config map[string]any)
	// LeaderElect switches leader election on, for more than one replica or as shipped.
	LeaderElect bool
	// Args come after the built-in flags.
	Args []string
	// Binary is the path of the program; "" means koord-scheduler in Options.Bin.
	Binary string
	// NoWait returns once the process runs, without waiting until it schedules: for a standby replica, and for
	// tests of what happens when something is missing.
	NoWait bool
}

// StartScheduler starts a replica of the rebuilt koord-scheduler as SchedulerIdentity and waits until it schedules.
func (c *ControlPlane) StartScheduler(ctx context.Context, opts SchedulerOptions) error {
	if opts.Name == "" {
		opts.Name = Scheduler
	}
	if opts.Binary == "" {
		opts.Binary = "koord-scheduler"
	}
	config, err := c.schedulerConfig(opts)
	if err != nil {
		return fmt.Errorf("configuration of the scheduler: %w", err)
	}
	m, err := c.managed(opts.Name, opts.Binary, "--config="+config, "--authentication-skip-lookup=true",
		"--enable-network-topology-manager=true", "--v=2")
	if err != nil {
		return err
	}
	if err := c.keepLocal(m, SchedulerIdentity); err != nil {
		return err
	}
	m.args = append(m.args, opts.Args...)
	if opts.NoWait {
		m.ready = nil
	}
	return c.launch(ctx, m)
}

func (c *ControlPlane) schedulerConfig(opts SchedulerOptions) (string, error) {
	if opts.Config == "" {
		root, err := RepositoryRoot()
		if err != nil {
			return "", err
		}
		opts.Config = filepath.Join(root, "scheduler-config.yaml")
	}
	content, err := os.ReadFile(opts.Config)
	if err != nil {
		return "", err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal(content, &config); err != nil {
		return "", fmt.Errorf("%s: %w", opts.Config, err)
	}
	if config["kind"] != "KubeSchedulerConfiguration" {
		return "", errors.New(opts.Config + " holds no KubeSchedulerConfiguration")
	}
	section(config, "clientConnection")["kubeconfig"] = c.Kubeconfig(SchedulerIdentity)
	section(config, "leaderElection")["leaderElect"] = opts.LeaderElect
	JobQueueArgs(config)["visibility"] = map[string]any{"port": 0}
	if opts.Mutate != nil {
		opts.Mutate(config)
	}
	content, err = yaml.Marshal(config)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.opts.Dir, string(opts.Name)+".yaml")
	return path, os.WriteFile(path, content, 0o644)
}

// section returns the map under key, and makes it if there is none.
func section(config map[string]any, key string) map[string]any {
	existing, ok := config[key].(map[string]any)
	if !ok {
		existing = map[string]any{}
		config[key] = existing
	}
	return existing
}

// JobQueueArgs are the arguments of the plugin in a decoded configuration, to be changed; the plugin's of the first
// profile that has any.
func JobQueueArgs(config map[string]any) map[string]any {
	for _, profile := range config["profiles"].([]any) {
		for _, plugin := range profile.(map[string]any)["pluginConfig"].([]any) {
			if plugin := plugin.(map[string]any); plugin["name"] == "JobQueue" {
				return plugin["args"].(map[string]any)
			}
		}
	}
	return map[string]any{}
}

// WithoutJobQueue turns the shipped configuration back into stock Koordinator's: a SchedulerOptions.Mutate.
func WithoutJobQueue(config map[string]any) {
	for _, p := range config["profiles"].([]any) {
		profile := p.(map[string]any)
		var args []any
		for _, a := range profile["pluginConfig"].([]any) {
			if a.(map[string]any)["name"] != "JobQueue" {
				args = append(args, a)
			}
		}
		profile["pluginConfig"] = args
		for point, set := range profile["plugins"].(map[string]any) {
			enabled, ok := set.(map[string]any)["enabled"].([]any)
			if !ok {
				continue
			}
			kept := []any{}
			for _, e := range enabled {
				if e.(map[string]any)["name"] != "JobQueue" {
					kept = append(kept, e)
				}
			}
			if point == "queueSort" {
				kept = []any{map[string]any{"name": "PrioritySort"}}
			}
			set.(map[string]any)["enabled"] = kept
		}
	}
}

// ControllerOptions say how jobqueue-controller runs. The zero value is the shipped configuration.
type ControllerOptions struct {
	// Name of the replica; "" means Controller.
	Name Component
	// Config has fields of its configuration file. They go before those that are shipped.
	Config map[string]any
	// LeaderElect switches leader election on.
	LeaderElect bool
	// Args come after the built-in flags.
	Args []string
	// MetricsSecure has its metrics served as they are shipped, to whom the API server lets; else anybody on this machine
	// may read them.
	MetricsSecure bool
	// Binary is the path of the program; "" means jobqueue-controller in Options.Bin.
	Binary string
	// NoWait returns once the process runs, without waiting until it is ready.
	NoWait bool
}

// StartController starts a replica of jobqueue-controller as ControllerIdentity and waits until it is ready.
func (c *ControlPlane) StartController(ctx context.Context, opts ControllerOptions) error {
	if opts.Name == "" {
		opts.Name = Controller
	}
	if opts.Binary == "" {
		opts.Binary = "jobqueue-controller"
	}
	config, err := c.controllerConfig(&opts)
	if err != nil {
		return fmt.Errorf("configuration of the controller: %w", err)
	}
	m, err := c.managed(opts.Name, opts.Binary, "--config="+config,
		fmt.Sprintf("--leader-elect=%t", opts.LeaderElect), fmt.Sprintf("--metrics-secure=%t", opts.MetricsSecure))
	if err != nil {
		return err
	}
	if err := c.keepLocal(m, ControllerIdentity); err != nil {
		return err
	}
	m.args = append(m.args, opts.Args...)
	if !opts.MetricsSecure {
		m.url, m.secureURL = strings.Replace(m.secureURL, "https", "http", 1), ""
	}
	if opts.NoWait {
		m.ready = nil
	}
	return c.launch(ctx, m)
}

// controllerConfig writes the file of --config: the shipped one, and the fields of the options.
func (c *ControlPlane) controllerConfig(opts *ControllerOptions) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(root, "manifests", "base", "controller", "config.yaml"))
	if err != nil {
		return "", err
	}
	var shipped struct{ Data map[string]string }
	if err := yaml.Unmarshal(content, &shipped); err != nil {
		return "", err
	}
	config := map[string]any{}
	if err := yaml.Unmarshal([]byte(shipped.Data["controller.yaml"]), &config); err != nil {
		return "", err
	}
	maps.Copy(config, opts.Config)
	if content, err = yaml.Marshal(config); err != nil {
		return "", err
	}
	path := filepath.Join(c.opts.Dir, string(opts.Name)+".yaml")
	return path, os.WriteFile(path, content, 0o644)
}
