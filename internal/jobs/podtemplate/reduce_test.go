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

package podtemplate

import (
	"reflect"
	"strings"
	"testing"

	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// A template in which every place that may hold a secret does.
const secretive = `
metadata:
  creationTimestamp: null
  labels: {app: a}
  annotations:
    vault.example.com/token: SECRET
    kubectl.kubernetes.io/last-applied-configuration: SECRET
    gang.scheduling.koordinator.sh/name: g
    koord-queue/related-podset-name: main
spec:
  containers:
  - name: main
    image: registry.example.com/SECRET
    command: [run, --password=SECRET]
    args: [SECRET]
    workingDir: /SECRET
    env: [{name: TOKEN, value: SECRET}]
    envFrom: [{secretRef: {name: SECRET}}]
    lifecycle: {preStop: {exec: {command: [SECRET]}}}
    livenessProbe: {httpGet: {path: /, port: 1, httpHeaders: [{name: a, value: SECRET}]}}
    volumeMounts: [{name: data, mountPath: /SECRET}]
    ports: [{name: SECRET, containerPort: 80, hostPort: 8080, protocol: TCP}]
    resources: {requests: {cpu: 1500m, nvidia.com/gpu: "2"}, limits: {nvidia.com/gpu: "2"}}
  initContainers:
  - {name: sidecar, image: SECRET, restartPolicy: Always, resources: {requests: {memory: 1Gi}}}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: config, configMap: {name: SECRET}}
  - {name: inline, csi: {driver: d, volumeAttributes: {key: SECRET}}}
  - {name: disk, gcePersistentDisk: {pdName: disk, fsType: SECRET}}
  serviceAccountName: SECRET
  imagePullSecrets: [{name: SECRET}]
  securityContext: {runAsUser: 1}
  hostAliases: [{ip: 1.2.3.4, hostnames: [SECRET]}]
  dnsConfig: {searches: [SECRET]}
  nodeSelector: {zone: a}
  tolerations: [{key: t, operator: Exists, tolerationSeconds: 9007199254740993}]
  priorityClassName: high
  priority: 2000000000
  schedulerName: koord-scheduler
  runtimeClassName: kata
  overhead: {cpu: 250m}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
`

const reducedSecretive = `
metadata:
  labels: {app: a}
  annotations: {gang.scheduling.koordinator.sh/name: g, koord-queue/related-podset-name: main}
spec:
  containers:
  - name: main
    ports: [{containerPort: 80, hostPort: 8080, protocol: TCP}]
    resources: {requests: {cpu: 1500m, nvidia.com/gpu: "2"}, limits: {nvidia.com/gpu: "2"}}
  initContainers:
  - {name: sidecar, restartPolicy: Always, resources: {requests: {memory: 1Gi}}}
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: config}
  - {name: inline}
  - {name: disk, gcePersistentDisk: {pdName: disk}}
  nodeSelector: {zone: a}
  tolerations: [{key: t, operator: Exists, tolerationSeconds: 9007199254740993}]
  priorityClassName: high
  priority: 2000000000
  schedulerName: koord-scheduler
  runtimeClassName: kata
  overhead: {cpu: 250m}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}
`

func asJSON(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	require.NoError(t, err)
	return raw
}

func TestReducedTemplatesHoldNoSecrets(t *testing.T) {
	whole := asJSON(t, secretive)
	reduced, err := Reduce(whole)
	require.NoError(t, err)
	require.JSONEq(t, string(asJSON(t, reducedSecretive)), string(reduced))
	require.NotContains(t, string(reduced), "SECRET")
	require.Contains(t, string(reduced), "9007199254740993", "amounts are not rounded")
	again, err := Reduce(reduced)
	require.NoError(t, err)
	require.Equal(t, reduced, again)

	// The requests of both are equal.
	requests := make([]corev1.ResourceList, 2)
	for i, raw := range [][]byte{whole, reduced} {
		template, err := Decode(raw)
		require.NoError(t, err)
		requests[i] = resourcehelper.PodRequests(&corev1.Pod{Spec: template.Spec}, resourcehelper.PodResourcesOptions{})
	}
	require.Equal(t, requests[0], requests[1])
}

func TestReducingWhatIsNoTemplate(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                             `{}`,
		`{"spec":"SECRET","metadata":3}`: `{}`,
		`{"spec":{"containers":"SECRET","volumes":["SECRET"]}}`: `{"spec":{"volumes":[]}}`,
	} {
		reduced, err := Reduce([]byte(text))
		require.NoError(t, err)
		require.JSONEq(t, want, string(reduced))
	}
	_, err := Reduce([]byte(`[`))
	require.ErrorIs(t, err, ErrMalformed)
}

// laterFields are those of later releases of Kubernetes.
var laterFields = map[string]bool{"schedulingGroup": true}

// A field that is not in pod specs stays for nobody.
func TestReducedFieldsExist(t *testing.T) {
	var check func(path string, of fields, in reflect.Type)
	check = func(path string, of fields, in reflect.Type) {
		for in.Kind() == reflect.Pointer || in.Kind() == reflect.Slice {
			in = in.Elem()
		}
		if of == nil {
			return
		}
		known := map[string]reflect.Type{}
		var collect func(t reflect.Type)
		collect = func(t reflect.Type) {
			for i := range t.NumField() {
				f := t.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if f.Anonymous && name == "" {
					collect(f.Type)
				}
				known[name] = f.Type
			}
		}
		collect(in)
		for name, below := range of {
			if laterFields[name] {
				continue
			}
			require.Contains(t, known, name, path)
			check(path+"."+name, below, known[name])
		}
	}
	check("", schedulingFields, reflect.TypeFor[corev1.PodTemplateSpec]())
}
