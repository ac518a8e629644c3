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

package manifests_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// The environment variables by which hack/chart.sh names the program helm and the chart.
const (
	helmProgram = "JOBQUEUE_HELM"
	helmChart   = "JOBQUEUE_CHART"
)

// choices are what somebody may install: the values of the chart, and the same with kustomize.
var choices = []struct {
	name      string
	values    []string
	kinds     []string // in the configuration of managed jobs, which people of kustomize edit
	kustomize func(t *testing.T) resmap.ResMap
}{
	{name: "enforce", kustomize: func(t *testing.T) resmap.ResMap { return build(t, "overlays/enforced") }},
	{
		name: "warn", values: []string{"tenancy.mode=warn"},
		kustomize: func(t *testing.T) resmap.ResMap { return build(t, "overlays/default") },
	},
	{
		name: "least",
		values: []string{"tenancy.mode=off", "admissionChecks.enabled=false", "networkPolicies.enabled=false",
			"podDisruptionBudgets.enabled=false", "reservations.enabled=false", "scheduler.enabled=false",
			"visibility.enabled=false"},
		kustomize: func(t *testing.T) resmap.ResMap {
			return buildOf(t, []string{"base", "components/kinds/job"}, nil)
		},
	},
	{
		name: "most",
		values: append(everyKind("kinds.%s.enabled=true", (*jobkind.Kind).File), "admissionChecks.definitions=true",
			"elasticQuotaTree.enabled=true", "web.enabled=true"),
		kinds: everyKind("%s", (*jobkind.Kind).String),
		kustomize: func(t *testing.T) resmap.ResMap {
			other := everyKind("components/kinds/%s", (*jobkind.Kind).File)
			other = slices.DeleteFunc(other, func(dir string) bool { return filepath.Base(dir) == "job" })
			other = append(other, "overlays/enforced", "components/admission-checks-crd", "components/elasticquotatree",
				"components/web")
			return buildOf(t, other, nil)
		},
	},
	{
		name: "a kind that warns", values: []string{"tenancy.mode=warn", "kinds.pytorchjob.enabled=true"},
		kinds: []string{"Job.v1.batch", "PyTorchJob.v1.kubeflow.org"},
		kustomize: func(t *testing.T) resmap.ResMap {
			return buildOf(t, []string{"overlays/default", "components/kinds-warn/pytorchjob"}, nil)
		},
	},
}

func everyKind(format string, name func(*jobkind.Kind) string) (all []string) {
	for _, kind := range jobkind.Builtin() {
		all = append(all, fmt.Sprintf(format, name(&kind)))
	}
	return all
}

// TestChart holds that the chart and kustomize install the same objects.
func TestChart(t *testing.T) {
	for _, c := range choices {
		t.Run(c.name, func(t *testing.T) {
			image := []string{"image.registry=registry.invalid/koord-jobqueue", "image.tag=unset"}
			out, err := helmTemplate(t, append(image, c.values...))
			require.NoError(t, err, out)
			content, err := c.kustomize(t).AsYaml()
			require.NoError(t, err)
			built, rendered := objects(t, content, c.kinds...), objects(t, []byte(out))
			require.ElementsMatch(t, slices.Collect(maps.Keys(built)), slices.Collect(maps.Keys(rendered)))
			for key := range built {
				require.Equal(t, built[key], rendered[key], key)
			}
		})
	}
}

// TestChartHasTheParametersOfPolicies: an account that is added as a value stays when the release is upgraded.
func TestChartHasTheParametersOfPolicies(t *testing.T) {
	const author = "system:serviceaccount:kubeflow:training-operator pods"
	out, err := helmTemplate(t, []string{"image.registry=registry.invalid/koord-jobqueue",
		"tenancy.parameters.authors=" + author})
	require.NoError(t, err, out)
	parameters := objects(t, []byte(out))["ConfigMap jobqueue-tenancy in koord-queue"]["data"]
	require.Equal(t, map[string]any{
		"authors": author, "schedulers": "koord-scheduler\n", "terminationGracePeriodSeconds": "3600",
	}, parameters)
}

// TestChartRefuses: an installation that cannot work, or would not be what its values mean, fails with a sentence.
func TestChartRefuses(t *testing.T) {
	const registry = "image.registry=registry.example.com/queue"
	for text, values := range map[string][]string{
		"image.registry is empty. Name the registry": nil,
		"No kind of jobs is enabled.":                {registry, "kinds.job.enabled=false"},
		"pytorch":                                    {registry, "kinds.pytorch.enabled=true"},
		"defaultReclam":                              {registry, "controller.config.defaultReclam=x"},
		"boolean":                                    {registry, "scheduler.args.protectReservedQuota=1"},
		"mode":                                       {registry, "tenancy.mode=on"},
		"schedulerName":                              {registry, "managedJobs.schedulerName=x"},
		"replicas":                                   {registry, "replicas=1"},
		"author":                                     {registry, "tenancy.parameters.author=a b"},
		"hosts":                                      {registry, "web.hosts={https://queue.example.com}"},
	} {
		out, err := helmTemplate(t, values)
		require.Error(t, err, text)
		require.Contains(t, out, text)
	}
}

// TestChartNamesThePage: those of the values come after the name of the Service, and its certificate has the Secret.
func TestChartNamesThePage(t *testing.T) {
	out, err := helmTemplate(t, []string{"image.registry=registry.example.com/queue", "web.enabled=true",
		"web.hosts={queue.example.com,queue.example.org}", "web.tlsSecret=page"})
	require.NoError(t, err, out)
	deployment := objects(t, []byte(out))["Deployment koord-jobqueue-web in koord-queue"]
	raw, err := yaml.Marshal(deployment)
	require.NoError(t, err)
	var d appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict(raw, &d))
	args := d.Spec.Template.Spec.Containers[0].Args
	require.Equal(t, []string{"--host=koord-jobqueue-web.koord-queue.svc", "--host=queue.example.com",
		"--host=queue.example.org"}, args[len(args)-3:])
	require.Equal(t, "page", d.Spec.Template.Spec.Volumes[1].Secret.SecretName)
}

// TestChartNamesSchedulersOnce: the policies let jobs name the schedulers that managed jobs may have.
func TestChartNamesSchedulersOnce(t *testing.T) {
	out, err := helmTemplate(t, []string{"image.registry=registry.example.com/queue", "managedJobs.schedulerNames={a,b}"})
	require.NoError(t, err)
	parameters := objects(t, []byte(out))["ConfigMap jobqueue-tenancy in koord-queue"]["data"].(map[string]any)
	require.Equal(t, "a\nb", parameters["schedulers"])
}

func helmTemplate(t *testing.T, values []string, flags ...string) (string, error) {
	t.Helper()
	if os.Getenv(helmProgram) == "" {
		t.Skip("make chart builds helm, and runs it")
	}
	helm := exec.CommandContext(t.Context(), os.Getenv(helmProgram), "template", "koord-jobqueue", os.Getenv(helmChart),
		"--namespace=koordinator-system", "--set="+strings.Join(values, ","))
	helm.Args = append(helm.Args, flags...)
	var failed strings.Builder
	helm.Stderr = &failed
	out, err := helm.Output()
	return string(out) + failed.String(), err
}

// objects of a YAML stream by kind and name. Annotations of Helm are left out. Configurations are decoded; that of
// managed jobs lists kinds if there are any.
func objects(t *testing.T, stream []byte, kinds ...string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for document := range strings.SplitSeq(string(stream), "\n---\n") {
		var o map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(document), &o))
		if len(o) == 0 {
			continue
		}
		meta := o["metadata"].(map[string]any)
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			if delete(annotations, "helm.sh/resource-policy"); len(annotations) == 0 {
				delete(meta, "annotations")
			}
		}
		data, _ := o["data"].(map[string]any)
		for _, file := range []string{managedjobs.Key, "controller.yaml", "scheduler-config.yaml"} {
			if text, ok := data[file].(string); ok {
				var config map[string]any
				require.NoError(t, yaml.Unmarshal([]byte(text), &config))
				data[file] = config
			}
		}
		if config, ok := data[managedjobs.Key].(map[string]any); ok && len(kinds) > 0 {
			config["kinds"] = []any{}
			for _, kind := range kinds {
				config["kinds"] = append(config["kinds"].([]any), kind)
			}
		}
		if o["kind"] == "Deployment" {
			pod := o["spec"].(map[string]any)["template"].(map[string]any)["metadata"].(map[string]any)
			annotations, _ := pod["annotations"].(map[string]any)
			if delete(annotations, "checksum/config"); len(annotations) == 0 {
				delete(pod, "annotations")
			}
		}
		key := fmt.Sprint(o["kind"], " ", meta["name"])
		if meta["namespace"] != nil {
			key += fmt.Sprint(" in ", meta["namespace"])
		}
		require.NotContains(t, all, key)
		all[key] = o
	}
	return all
}
