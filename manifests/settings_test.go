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
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
	controllerconfig "github.com/koord-jobqueue/koord-jobqueue/apis/config/controller/v1alpha1"
	pluginconfig "github.com/koord-jobqueue/koord-jobqueue/apis/config/v1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// words are values of fields that take some words alone.
var words = map[string]string{
	"DefaultReclaim": "LowerPriority", "UnitTemplates": "Full", "VisibilitySecret": "other/secret",
	"DefaultQueuePolicy": "Block", "UnknownJobs": "Pass", "BindAddress": "127.0.0.1", "Path": "/history/file",
	"CertDir": "/other",
}

// alter gives each field below a value that is not its default.
func alter(t *testing.T, v reflect.Value, name string) {
	t.Helper()
	if d, ok := v.Addr().Interface().(*metav1.Duration); ok {
		d.Duration += 3 * time.Second
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		alter(t, v.Elem(), name)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type() != reflect.TypeFor[metav1.TypeMeta]() {
				alter(t, v.Field(i), v.Type().Field(i).Name)
			}
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]bool{"PartialAdmission": false}))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int32:
		v.SetInt(v.Int() + 1)
	case reflect.Float32:
		v.SetFloat(v.Float() + 1)
	case reflect.String:
		word := "other"
		if words[name] != "" {
			word = words[name]
		}
		require.NotEqual(t, word, v.String(), name)
		v.SetString(word)
	default:
		require.Fail(t, "no value", "%s %s", name, v.Type())
	}
}

// fields of a configuration, without its type.
func fields(t *testing.T, of any) (out map[string]any) {
	t.Helper()
	raw, err := yaml.Marshal(of)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(raw, &out))
	delete(out, "apiVersion")
	delete(out, "kind")
	return out
}

// write writes an object as a file, and returns its name.
func write(t *testing.T, name string, of any) string {
	t.Helper()
	raw, err := yaml.Marshal(of)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, raw, 0o600))
	return file
}

// settings are the configurations with no field at its default.
func settings(t *testing.T) (*controllerconfig.ControllerConfiguration, *pluginconfig.JobQueueArgs) {
	t.Helper()
	controller, args := controllerconfig.Default(), &pluginconfig.JobQueueArgs{}
	alter(t, reflect.ValueOf(controller).Elem(), "")
	*controller.MetricsSecure = true // metricsCertDir needs it
	pluginconfig.SetDefaultsJobQueueArgs(args)
	alter(t, reflect.ValueOf(args).Elem(), "")
	return controller, args
}

// TestEverySettingIsReachable: each field of both configurations can be set by the chart and with kustomize, and the
// process reads it.
func TestEverySettingIsReachable(t *testing.T) {
	controller, args := settings(t)
	t.Run("kustomize", func(t *testing.T) {
		text, err := os.ReadFile("../scheduler-config.yaml")
		require.NoError(t, err)
		var scheduler map[string]any
		require.NoError(t, yaml.Unmarshal(text, &scheduler))
		for key, value := range fields(t, args) {
			controlplane.JobQueueArgs(scheduler)[key] = value
		}
		patch := func(name, namespace, file string, of any) string {
			raw, err := yaml.Marshal(of)
			require.NoError(t, err)
			return write(t, "patch.yaml", corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: map[string]string{file: string(raw)},
			})
		}
		built, err := buildOf(t, []string{"overlays/default"}, nil,
			patch("koord-jobqueue-controller", "koord-queue", "controller.yaml", controller),
			patch("koord-jobqueue-scheduler", "koordinator-system", "scheduler-config.yaml", scheduler)).AsYaml()
		require.NoError(t, err)
		reached(t, built, controller, args)
	})
	t.Run("chart", func(t *testing.T) {
		file := write(t, "values.yaml", map[string]any{
			"controller": map[string]any{"config": fields(t, controller)},
			"scheduler":  map[string]any{"args": fields(t, args)},
		})
		out, err := helmTemplate(t, []string{"image.registry=registry.invalid/koord-jobqueue"}, "--values="+file)
		require.NoError(t, err, out)
		reached(t, []byte(out), controller, args)
	})
}

// TestChartTakesAConfigurationOfYourOwn: it is used by the chart as it is.
func TestChartTakesAConfigurationOfYourOwn(t *testing.T) {
	own := write(t, "own.yaml", map[string]any{"kind": "KubeSchedulerConfiguration", "parallelism": 3})
	out, err := helmTemplate(t, []string{"image.registry=registry.invalid/koord-jobqueue"},
		"--set-file=scheduler.config="+own)
	require.NoError(t, err, out)
	data := objects(t, []byte(out))["ConfigMap koord-jobqueue-scheduler in koordinator-system"]["data"]
	require.Equal(t, map[string]any{"scheduler-config.yaml": map[string]any{
		"kind": "KubeSchedulerConfiguration", "parallelism": float64(3),
	}}, data)
}

// reached holds that the processes read these configurations from what is installed.
func reached(
	t *testing.T, installed []byte, controller *controllerconfig.ControllerConfiguration, args *pluginconfig.JobQueueArgs,
) {
	t.Helper()
	all := objects(t, installed)
	dataOf := func(name, file string) any {
		return all["ConfigMap "+name]["data"].(map[string]any)[file]
	}
	raw, err := yaml.Marshal(dataOf("koord-jobqueue-controller in koord-queue", "controller.yaml"))
	require.NoError(t, err)
	have, err := controllerconfig.Load(raw)
	require.NoError(t, err)
	require.Equal(t, controller, have)

	found := controlplane.JobQueueArgs(
		dataOf("koord-jobqueue-scheduler in koordinator-system", "scheduler-config.yaml").(map[string]any))
	raw, err = yaml.Marshal(found)
	require.NoError(t, err)
	scheme := runtime.NewScheme()
	require.NoError(t, config.AddToScheme(scheme))
	require.NoError(t, pluginconfig.AddToScheme(scheme))
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	decoded, _, err := codecs.UniversalDecoder().Decode(raw, nil, nil)
	require.NoError(t, err)
	require.Empty(t, decoded.(*config.JobQueueArgs).Validate(field.NewPath("args")))
	want := &config.JobQueueArgs{}
	require.NoError(t, scheme.Convert(args, want, nil))
	require.Equal(t, want, decoded)
}
