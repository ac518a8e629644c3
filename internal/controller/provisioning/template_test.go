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

package provisioning

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	api "k8s.io/kubernetes/pkg/apis/core"
	apiv1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"sigs.k8s.io/yaml"

	autoscalingv1 "github.com/koord-jobqueue/koord-jobqueue/apis/autoscaling/v1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// templates that an API server takes in a job.
var takenTemplates = map[string]string{
	"volumes": `
spec:
  restartPolicy: Never
  volumes:
  - {name: code, configMap: {name: code}}
  - {name: key, secret: {secretName: key}}
  - {name: scratch, emptyDir: {sizeLimit: 1Gi}}
  - {name: data, persistentVolumeClaim: {claimName: data}}
  - {name: host, hostPath: {path: /dev}}
  - name: fast
    ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
  containers:
  - name: c
    image: x
    volumeMounts: [{name: code, mountPath: /code}, {name: data, mountPath: /data}]
`,
	"network": `
spec:
  hostNetwork: true
  restartPolicy: OnFailure
  containers:
  - {name: c, image: x, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]}
  initContainers:
  - {name: sidecar, image: y, restartPolicy: Always, resources: {limits: {cpu: 100m}}}
`,
	"places": `
metadata:
  labels: {app: x}
  annotations: {scheduling.x-k8s.io/pod-group: g, other: secret}
spec:
  nodeSelector: {a: b}
  schedulerName: koord-scheduler
  priorityClassName: high
  runtimeClassName: kata
  overhead: {cpu: 250m}
  os: {name: linux}
  terminationGracePeriodSeconds: 30
  securityContext: {runAsUser: 1}
  schedulingGates: [{name: example.com/gate}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
  containers:
  - {name: c, image: x, resources: {limits: {nvidia.com/gpu: 1, memory: 1Gi}, requests: {memory: 512Mi}}}
  - {name: d, image: x, env: [{name: A, value: b}], command: [run], livenessProbe: {exec: {command: [x]}}}
`,
	"claims": `
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers:
  - {name: c, image: x, resources: {claims: [{name: gpu}]}}
`,
}

// The API server accepts the copy of every accepted template, whether units keep whole templates or not.
func TestTemplatesAreTaken(t *testing.T) {
	for name, text := range takenTemplates {
		t.Run(name, func(t *testing.T) {
			raw, err := yaml.YAMLToJSON([]byte(text))
			require.NoError(t, err)
			pods, err := templateOf(&v1alpha1.PodSet{Template: runtime.RawExtension{Raw: raw}})
			require.NoError(t, err)
			reduced, err := json.Marshal(pods)
			require.NoError(t, err)
			again, err := templateOf(&v1alpha1.PodSet{Template: runtime.RawExtension{Raw: reduced}})
			require.NoError(t, err)
			require.Equal(t, pods, again)
			require.False(t, strings.Contains(string(reduced), "secret"), string(reduced))

			template := newTemplate(&autoscalingv1.ProvisioningRequest{}, &podSet{
				template: autoscalingv1.Reference{Name: "x"}, pods: pods})
			template.Namespace, template.OwnerReferences = "ns", nil
			apiv1.SetObjectDefaults_PodTemplate(template)
			internal := &api.PodTemplate{}
			require.NoError(t, apiv1.Convert_v1_PodTemplate_To_core_PodTemplate(template, internal, nil))
			require.Empty(t, validation.ValidatePodTemplate(internal, validation.PodValidationOptions{}))
		})
	}
}
