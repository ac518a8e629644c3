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
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The operators: controllers of others, each of which makes pods of job kinds of its own. binaries.Operators() builds
// them, and StartOperator starts them.
const (
	// TrainingOperator runs TFJob, PyTorchJob, XGBoostJob, PaddleJob, JAXJob and MPIJob (v1).
	TrainingOperator Component = "training-operator"
	// Trainer runs TrainJob, by making a JobSet of it.
	Trainer Component = "trainer"
	// Kueue is not run: tests read its CRDs, of a release whose v1beta2 is that of 0.20.
	Kueue Component = "kueue"
	// Trainer23 is a later release, of which tests read the CRDs: it needs a newer JobSet than Trainer is built with.
	Trainer23 Component = "trainer-2.3"
	// JobSet runs JobSet, by making Jobs of it.
	JobSet Component = "jobset"
	// KubeRay runs RayJob and RayCluster.
	KubeRay Component = "kuberay"
)

// Operators are all of them.
func Operators() []Component { return []Component{TrainingOperator, Trainer, JobSet, KubeRay} }

// operator is where the module of an operator has what its installation applies.
type operator struct {
	// tools is the module of ours that builds it.
	tools string
	// module it is in, and in that the directory of its CRDs and the file with its admission webhooks, if it has some.
	module, definitions, webhooks string
	// namespace and secret must exist, or one with webhooks does not start: there it keeps a certificate that nobody uses
	// here.
	namespace, secret string
	// alsoDefined is an operator whose CRDs it does not start without.
	alsoDefined Component
}

var operators = map[Component]operator{
	TrainingOperator: {
		tools:       "training-operator",
		module:      "github.com/kubeflow/training-operator",
		definitions: "manifests/base/crds",
		webhooks:    "manifests/base/webhook/manifests.yaml",
		namespace:   "kubeflow",
		secret:      "training-operator-webhook-cert",
	},
	Trainer: {
		tools:       "trainer",
		module:      "github.com/kubeflow/trainer/v2",
		definitions: "manifests/base/crds",
		webhooks:    "manifests/base/webhook/manifests.yaml",
		namespace:   "kubeflow-system",
		secret:      "kubeflow-trainer-webhook-cert",
		alsoDefined: JobSet,
	},
	Kueue: {
		tools:       "kueue-crds",
		module:      "sigs.k8s.io/kueue",
		definitions: "config/components/crd/bases",
	},
	Trainer23: {
		tools:       "trainer-crds",
		module:      "github.com/kubeflow/trainer/v2",
		definitions: "manifests/base/crds",
	},
	JobSet: {
		tools:       "trainer",
		module:      "sigs.k8s.io/jobset",
		definitions: "config/components/crd/bases",
		webhooks:    "config/components/webhook/manifests.yaml",
		namespace:   "jobset-system",
	},
	KubeRay: {
		tools:       "kuberay",
		module:      "github.com/ray-project/kuberay/ray-operator",
		definitions: "config/crd/bases",
	},
}

// OperatorOptions say how an operator runs. The zero value is all its kinds.
type OperatorOptions struct {
	// GangScheduler is the TrainingOperator's --gang-scheduler-name. It makes a PodGroup of scheduling.x-k8s.io for every
	// job, and installs the CRD. Its name is the scheduler of pods that name none.
	GangScheduler string
}

// StartOperator installs CRDs and other objects of the operator, starts it as OperatorIdentity and waits until it is
// ready. Kill, Restart, StopComponent and Stop work as for other components. The API server calls its admission
// webhooks, as in a real installation. While the operator is down, nobody can write its kinds or create pods of a
// JobSet. The Trainer makes JobSets: without JobSet it makes no pods.
func (c *ControlPlane) StartOperator(ctx context.Context, component Component, opts OperatorOptions) error {
	o, ok := operators[component]
	if !ok {
		return fmt.Errorf("%s is no operator", component)
	}
	if err := c.ApplyOperatorCRDs(ctx, component, ""); err != nil {
		return err
	}
	if o.alsoDefined != "" {
		if err := c.ApplyOperatorCRDs(ctx, o.alsoDefined, ""); err != nil {
			return err
		}
	}
	if opts.GangScheduler != "" {
		if err := c.applyPodGroupCRD(ctx); err != nil {
			return err
		}
	}
	if component == KubeRay {
		return c.runKubeRay(ctx)
	}
	if err := c.ApplyObjects(ctx, o.place()...); err != nil {
		return err
	}
	return c.runOperator(ctx, component, opts)
}

// runOperator starts an operator for which everything is installed, and has the API server ask its webhooks.
func (c *ControlPlane) runOperator(ctx context.Context, component Component, opts OperatorOptions) error {
	health, err := allPorts.next()
	if err != nil {
		return err
	}
	webhook, err := allPorts.next()
	if err != nil {
		return err
	}
	args, err := c.operatorArgs(component, opts, health, webhook)
	if err != nil {
		return err
	}
	m, err := c.managed(component, string(component), args...)
	if err != nil {
		return err
	}
	// Their webhook servers have the certificate below it.
	m.env = []string{"TMPDIR=" + c.operatorDir(component)}
	configurations, err := c.operatorWebhooks(ctx, component, webhook)
	if err != nil {
		return err
	}
	m.ready = operatorReady(health, configurations)
	if err := c.launch(ctx, m); err != nil {
		return err
	}
	return c.ApplyObjects(ctx, configurations...)
}

// operatorDir is the directory for temporary files of an operator.
func (c *ControlPlane) operatorDir(component Component) string {
	return filepath.Join(c.opts.Dir, "tmp", string(component))
}

// place returns the namespace of the operator, and the Secret that it fills with a certificate.
func (o *operator) place() []*unstructured.Unstructured {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": o.namespace},
	}}
	if o.secret == "" {
		return []*unstructured.Unstructured{namespace}
	}
	return []*unstructured.Unstructured{namespace, {Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": o.secret, "namespace": o.namespace},
	}}}
}

// operatorArgs are the flags of an operator. It writes the files that they name.
func (c *ControlPlane) operatorArgs(component Component, opts OperatorOptions, health, webhook int) ([]string, error) {
	certificates, err := c.webhookCertificate(component)
	if err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + c.Kubeconfig(OperatorIdentity),
		"--leader-elect=false",
		"--metrics-bind-address=0",
		"--health-probe-bind-address=" + hostPort(health),
	}
	switch component {
	case TrainingOperator:
		// The webhook servers of this one and of the Trainer listen on all addresses: there is no option for it.
		args = append(args, fmt.Sprintf("--webhook-server-port=%d", webhook))
		if opts.GangScheduler != "" {
			args = append(args, "--gang-scheduler-name="+opts.GangScheduler)
		}
	case Trainer:
		args = append(args, fmt.Sprintf("--webhook-server-port=%d", webhook))
	case JobSet:
		config := fmt.Sprintf("apiVersion: config.jobset.x-k8s.io/v1alpha1\nkind: Configuration\n"+
			"internalCertManagement: {enable: false}\nwebhook: {host: %s, port: %d, certDir: %q}\n",
			loopback, webhook, certificates)
		path := filepath.Join(c.opts.Dir, string(component)+".yaml")
		if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
			return nil, err
		}
		args = append(args, "--config="+path)
	default:
		return nil, fmt.Errorf("%s is no operator", component)
	}
	return args, nil
}

// rotatorMark is a file that the training-operator and the Trainer wait for, at a place that is fixed in their code,
// before they start anything. They do not read it: what they serve with is below TMPDIR.
const rotatorMark = "/tmp/k8s-webhook-server/serving-certs/tls.crt"

// webhookCertificate puts the certificate of this machine where the operator looks for its own, and returns the
// directory.
func (c *ControlPlane) webhookCertificate(component Component) (string, error) {
	dir := filepath.Join(c.operatorDir(component), "k8s-webhook-server", "serving-certs")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for from, to := range map[string]string{"apiserver.crt": "tls.crt", "apiserver.key": "tls.key"} {
		content, err := os.ReadFile(c.pki.path(from))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, to), content, 0o600); err != nil {
			return "", err
		}
	}
	if component == JobSet {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(rotatorMark), 0o755); err != nil {
		return "", err
	}
	mark, err := os.OpenFile(rotatorMark, os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return dir, nil
	}
	if err != nil {
		return "", err
	}
	return dir, mark.Close()
}

// ApplyOperatorCRDs applies only the definitions of an operator, from its Go module, and waits until they are served.
// resource ("pytorchjobs") selects one, and "" all.
func (c *ControlPlane) ApplyOperatorCRDs(ctx context.Context, component Component, resource string) error {
	o := operators[component]
	module, err := moduleDirectory(ctx, o.tools, o.module)
	if err != nil {
		return err
	}
	found, err := definitions(filepath.Join(module, o.definitions, "*_"+cmp.Or(resource, "*")+".yaml"))
	if err != nil {
		return err
	}
	return c.ApplyObjects(ctx, found...)
}

// applyPodGroupCRD applies the definition of the PodGroup of scheduling.x-k8s.io, which operators make and Koordinator
// does not read: its own is in scheduling.sigs.k8s.io.
func (c *ControlPlane) applyPodGroupCRD(ctx context.Context) error {
	module, err := moduleDirectory(ctx, "training-operator", "sigs.k8s.io/scheduler-plugins")
	if err != nil {
		return err
	}
	found, err := definitions(filepath.Join(module, "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml"))
	if err != nil {
		return err
	}
	return c.ApplyObjects(ctx, found...)
}

// definitions reads all objects of the files.
func definitions(pattern string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no definitions in %s", pattern)
	}
	var found []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := decode(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		found = append(found, objects...)
	}
	return found, nil
}

// moduleDirectory is where a module is on this machine, in the version that a module of hack/tools needs.
func moduleDirectory(ctx context.Context, tools, module string) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	// Unlike `go list` it fetches the module, for a machine that has the program but not what it was built from.
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	download.Dir = filepath.Join(root, "hack", "tools", tools)
	var stderr bytes.Buffer
	download.Stderr = &stderr
	out, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w: %s%s", module, err, out, stderr.String())
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil {
		return "", fmt.Errorf("find the module %s: %w", module, err)
	}
	return found.Dir, nil
}

// operatorWebhooks returns what has the API server ask the operator at that port, instead of a Service.
func (c *ControlPlane) operatorWebhooks(
	ctx context.Context, component Component, port int,
) ([]*unstructured.Unstructured, error) {
	o := operators[component]
	module, err := moduleDirectory(ctx, o.tools, o.module)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(module, o.webhooks))
	if err != nil {
		return nil, err
	}
	configurations, err := decode(content)
	if err != nil {
		return nil, err
	}
	for _, configuration := range configurations {
		// Not the name that its installation has, under which the operator would write another certificate into it.
		configuration.SetName(string(component))
		for _, w := range configuration.Object["webhooks"].([]any) {
			w := w.(map[string]any)
			path, _, err := unstructured.NestedString(w, "clientConfig", "service", "path")
			if err != nil {
				return nil, err
			}
			w["clientConfig"] = map[string]any{
				"url": loopbackURL(port) + path, "caBundle": base64.StdEncoding.EncodeToString(c.pki.ca),
			}
			if strings.HasSuffix(path, "-pod") {
				// As its installation does, or no pod could be created while JobSet does not run.
				w["objectSelector"] = map[string]any{"matchExpressions": []any{
					map[string]any{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"},
				}}
			}
		}
	}
	return configurations, nil
}

// operatorReady asks whether the operator is ready, and whether each of its webhooks answers. The operator reports
// readiness when its webhook server listens, before that serves anything and before the controllers run.
func operatorReady(health int, webhooks []*unstructured.Unstructured) func(context.Context) error {
	checks := []func(context.Context) error{httpOK(http.DefaultClient, "http://"+hostPort(health)+"/readyz", "")}
	client := insecureLocal()
	for _, configuration := range webhooks {
		for _, w := range configuration.Object["webhooks"].([]any) {
			url := w.(map[string]any)["clientConfig"].(map[string]any)["url"].(string)
			checks = append(checks, httpOK(client, url, ""))
		}
	}
	return func(ctx context.Context) error {
		for _, check := range checks {
			if err := check(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}
