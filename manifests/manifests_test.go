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

// Package manifests_test checks the shipped manifests. Every overlay builds. No account has a right that it does not
// need. The scheduler's configuration is Koordinator's own with the lines of JobQueue added.
package manifests_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/page"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/webserver"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/quotapath"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/koordinatorchart"
)

const (
	schedulerAccount  = "koordinator-system/koord-scheduler"
	controllerAccount = "koord-queue/jobqueue-controller"
)

// The schemas bound what the scheduler bounds.
func TestBoundsOfSchemas(t *testing.T) {
	for _, tc := range []struct {
		crd  string
		path []string // below spec.versions[0].schema.openAPIV3Schema
		most float64
	}{
		{"queues", []string{"spec", "preemption", "minRunTimeSeconds", "maximum"}, queue.MostMinRunTime.Seconds()},
		{"queueunits", []string{"status", "preemption", "holds", "maxItems"}, reclaim.MostHolds},
	} {
		raw, err := os.ReadFile("base/crd/scheduling.x-k8s.io_" + tc.crd + ".yaml")
		require.NoError(t, err)
		var crd apiextensionsv1.CustomResourceDefinition
		require.NoError(t, yaml.UnmarshalStrict(raw, &crd))
		at := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, name := range tc.path[:len(tc.path)-1] {
			require.Contains(t, at.Properties, name)
			next := at.Properties[name]
			at = &next
		}
		most := map[string]float64{"maximum": ptr.Deref(at.Maximum, 0), "maxItems": float64(ptr.Deref(at.MaxItems, 0))}
		require.Equal(t, tc.most, most[tc.path[len(tc.path)-1]], tc.path)
	}
}

func build(t testing.TB, dir string) resmap.ResMap {
	t.Helper()
	out, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	require.NoError(t, err, "kubectl apply -k manifests/%s", dir)
	require.NotZero(t, out.Size())
	return out
}

func decode[T any](t testing.TB, r *resource.Resource) T {
	t.Helper()
	var out T
	raw, err := r.AsYAML()
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(raw, &out), r.CurId())
	return out
}

// components are what other directories add, and are nothing by themselves.
var components = []string{"components/tenancy-deny", "components/tenancy-warn"}

// directories are those that build by themselves.
func directories(t *testing.T) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(".", func(file string, _ os.DirEntry, err error) error {
		if dir := filepath.Dir(file); filepath.Base(file) == "kustomization.yaml" && !slices.Contains(components, dir) {
			all = append(all, dir)
		}
		return err
	}))
	require.NotEmpty(t, all)
	return all
}

func TestEveryDirectoryBuilds(t *testing.T) {
	kinds, err := filepath.Glob("components/kinds/*/kustomization.yaml")
	require.NoError(t, err)
	require.Len(t, kinds, len(jobkind.Builtin()))
	for _, dir := range directories(t) {
		t.Run(dir, func(t *testing.T) { build(t, dir) })
	}
}

// TestAggregatedRolesNameNoRules: kube-controller-manager owns the rules of such a role, so applying rules conflicts
// with it on the server.
func TestAggregatedRolesNameNoRules(t *testing.T) {
	found := 0
	for _, dir := range directories(t) {
		for _, r := range build(t, dir).Resources() {
			role, err := r.Map()
			require.NoError(t, err)
			if r.GetKind() == "ClusterRole" && role["aggregationRule"] != nil {
				found++
				require.NotContains(t, role, "rules", "%s: %s", dir, r.GetName())
			}
		}
	}
	require.NotZero(t, found)
}

// TestDefaultCanBeDeleted: deleting what manifests/overlays/default installs must not take Koordinator away.
func TestDefaultCanBeDeleted(t *testing.T) {
	for _, r := range build(t, "overlays/default").Resources() {
		if r.GetNamespace() == "koordinator-system" || r.GetNamespace() == "kube-system" {
			require.Contains(t, r.GetName(), "jobqueue", r.CurId())
		}
		require.False(t, r.GetKind() == "Namespace" && r.GetName() != "koord-queue", r.CurId())
	}
}

// rules collects the rules of all roles that we ship, by the account that they are bound to.
// Roles that are not bound are for people and are listed under their own name.
func rules(t *testing.T) map[string][]rbacv1.PolicyRule {
	t.Helper()
	roles := map[string][]rbacv1.PolicyRule{}
	out := map[string][]rbacv1.PolicyRule{}
	bound := map[string]bool{}
	var resources []*resource.Resource
	for _, dir := range []string{"base/rbac", "components/kinds/job", "components/elasticquotatree"} {
		resources = append(resources, build(t, dir).Resources()...)
	}
	for _, r := range resources {
		switch r.GetKind() {
		case "ClusterRole":
			roles["ClusterRole/"+r.GetName()] = decode[rbacv1.ClusterRole](t, r).Rules
		case "Role":
			roles["Role/"+r.GetName()] = decode[rbacv1.Role](t, r).Rules
		}
	}
	bind := func(ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
		for _, s := range subjects {
			require.Equal(t, "ServiceAccount", s.Kind)
			account := s.Namespace + "/" + s.Name
			out[account] = append(out[account], roles[ref.Kind+"/"+ref.Name]...)
		}
		bound[ref.Kind+"/"+ref.Name] = true
	}
	for _, r := range resources {
		switch r.GetKind() {
		case "ClusterRoleBinding":
			b := decode[rbacv1.ClusterRoleBinding](t, r)
			bind(b.RoleRef, b.Subjects)
		case "RoleBinding":
			b := decode[rbacv1.RoleBinding](t, r)
			bind(b.RoleRef, b.Subjects)
		}
	}
	for name, r := range roles {
		if !bound[name] {
			out[name] = r
		}
	}
	return out
}

func TestNoWildcards(t *testing.T) {
	for who, list := range rules(t) {
		for _, r := range list {
			for _, s := range slices.Concat(r.APIGroups, r.Resources, r.Verbs, r.ResourceNames, r.NonResourceURLs) {
				require.NotContains(t, s, "*", who)
			}
		}
	}
}

// TestNobodyElseWritesStatus: the phase of a unit is what lets a job go.
func TestNobodyElseWritesStatus(t *testing.T) {
	writes := []string{"create", "update", "patch", "delete", "deletecollection"}
	var writers []string
	for who, list := range rules(t) {
		for _, r := range list {
			for _, res := range r.Resources {
				if !strings.HasPrefix(res, "queue") || !strings.HasSuffix(res, "/status") {
					continue
				}
				if slices.ContainsFunc(r.Verbs, func(v string) bool { return slices.Contains(writes, v) }) {
					writers = append(writers, who)
				}
			}
		}
	}
	slices.Sort(writers)
	require.Equal(t, []string{controllerAccount, schedulerAccount}, slices.Compact(writers))
}

// TestNothingIsGrantedForOtherKinds: the default installation grants rights only for the kinds that are managed by
// default.
func TestNothingIsGrantedForOtherKinds(t *testing.T) {
	granted := rules(t)
	for _, kind := range jobkind.Builtin() {
		for who, rights := range map[string][]rbacv1.PolicyRule{
			schedulerAccount: kind.SchedulerRights(), controllerAccount: kind.ControllerRights(),
		} {
			has := slices.ContainsFunc(granted[who], func(r rbacv1.PolicyRule) bool {
				return reflect.DeepEqual(r, rights[0])
			})
			require.Equal(t, kind.String() == "Job.v1.batch", has, "%s: %v", who, rights[0])
		}
	}
}

// TestNoDangerousRights: none of what leads from these accounts to others.
func TestNoDangerousRights(t *testing.T) {
	for who, list := range rules(t) {
		for _, r := range list {
			for _, res := range r.Resources {
				require.NotContains(t, []string{"secrets", "serviceaccounts/token", "pods/exec", "pods/attach", "nodes/proxy"},
					res, who)
			}
			for _, v := range r.Verbs {
				require.NotContains(t, []string{"escalate", "bind", "impersonate"}, v, who)
			}
		}
	}
}

// TestPodsAreConfined: what `restricted` of the pod security standards asks for, and a read-only root.
func TestPodsAreConfined(t *testing.T) {
	for _, dir := range []string{"overlays/default", "overlays/fresh", "components/web"} {
		for _, r := range build(t, dir).Resources() {
			if r.GetKind() != "Deployment" {
				continue
			}
			d := decode[appsv1.Deployment](t, r)
			pod := d.Spec.Template.Spec
			require.True(t, *pod.SecurityContext.RunAsNonRoot, d.Name)
			require.EqualValues(t, 65532, *pod.SecurityContext.RunAsUser, d.Name)
			require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type, d.Name)
			require.Equal(t, d.Spec.Selector.MatchLabels["app.kubernetes.io/name"],
				d.Spec.Template.Labels["app.kubernetes.io/name"])
			for _, c := range pod.Containers {
				require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, d.Name)
				require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, d.Name)
				require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, d.Name)
				require.NotEmpty(t, c.Resources.Requests, d.Name)
				require.NotNil(t, c.ReadinessProbe, d.Name)
				require.True(t, strings.HasPrefix(c.Image, "registry.invalid/"), "%s: nobody can own the name %s", d.Name, c.Image)
			}
		}
	}
}

// TestThePlainPortStaysClosed: what the scheduler says on its plain port it says to anybody.
func TestThePlainPortStaysClosed(t *testing.T) {
	for _, r := range build(t, "overlays/fresh").Resources() {
		if r.GetKind() != "Deployment" || r.GetName() != "koord-jobqueue-scheduler" {
			continue
		}
		c := decode[appsv1.Deployment](t, r).Spec.Template.Spec.Containers[0]
		require.Contains(t, c.Args, "--port=0")
		require.Equal(t, corev1.URISchemeHTTPS, c.ReadinessProbe.HTTPGet.Scheme)
		for _, port := range c.Ports {
			require.NotEqual(t, int32(10251), port.ContainerPort)
		}
		return
	}
	require.Fail(t, "no scheduler")
}

// TestImagesAreNamed: an installer names the images by tag or by digest, with one command for all places.
func TestImagesAreNamed(t *testing.T) {
	name := func(t *testing.T, args ...string) (string, error) {
		t.Helper()
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(".")))
		command := exec.CommandContext(t.Context(), "../hack/set-images.sh", args...)
		command.Env = append(os.Environ(), "DIR="+dir)
		out, err := command.CombinedOutput()
		t.Log(string(out))
		return dir, err
	}
	images := func(t *testing.T, dir string) (found []string) {
		t.Helper()
		for _, component := range []string{"overlays/default", "overlays/fresh", "components/web"} {
			for _, r := range build(t, filepath.Join(dir, component)).Resources() {
				if r.GetKind() == "Deployment" {
					found = append(found, decode[appsv1.Deployment](t, r).Spec.Template.Spec.Containers[0].Image)
				}
			}
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	dir, err := name(t, "registry.example.com:5000/queue", "v1")
	require.NoError(t, err)
	require.Equal(t, []string{
		"registry.example.com:5000/queue/jobqueue-controller:v1", "registry.example.com:5000/queue/jobqueue-web:v1",
		"registry.example.com:5000/queue/koord-scheduler:v1",
	}, images(t, dir))

	digest := "sha256:" + strings.Repeat("a1", 32)
	dir, err = name(t, "registry.example.com/queue", "v1", "koord-scheduler="+digest, "jobqueue-controller="+digest,
		"jobqueue-web="+digest)
	require.NoError(t, err)
	require.Equal(t, []string{
		"registry.example.com/queue/jobqueue-controller@" + digest, "registry.example.com/queue/jobqueue-web@" + digest,
		"registry.example.com/queue/koord-scheduler@" + digest,
	}, images(t, dir))

	for _, args := range [][]string{{"registry.example.com"}, {"a b", "v1"}, {"a/b", "koord-scheduler=" + digest}} {
		dir, err := name(t, args...)
		require.Error(t, err, "%v", args)
		require.Contains(t, images(t, dir)[0], "registry.invalid/", "nothing is written by halves")
	}
}

// TestEveryDeploymentIsGuarded: a drained node leaves one replica, and nobody reaches what is not meant for him.
func TestEveryDeploymentIsGuarded(t *testing.T) {
	for _, dir := range []string{"overlays/default", "overlays/fresh", "components/web"} {
		deployments, budgets, policies := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, r := range build(t, dir).Resources() {
			switch r.GetKind() {
			case "Deployment":
				deployments[decode[appsv1.Deployment](t, r).Spec.Selector.String()] = true
			case "PodDisruptionBudget":
				budgets[decode[policyv1.PodDisruptionBudget](t, r).Spec.Selector.String()] = true
			case "NetworkPolicy":
				p := decode[networkingv1.NetworkPolicy](t, r)
				policies[p.Spec.PodSelector.String()] = true
				require.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, p.Spec.PolicyTypes)
			}
		}
		require.NotEmpty(t, deployments)
		require.Equal(t, deployments, budgets, dir)
		require.Equal(t, deployments, policies, dir)
	}
}

// TestSchedulerConfigIsStockPlusJobQueue takes the lines of JobQueue out of scheduler-config.yaml;
// what is left must be the configuration that Koordinator's chart installs.
func TestSchedulerConfigIsStockPlusJobQueue(t *testing.T) {
	ours := readYAML(t, "../scheduler-config.yaml")
	for _, field := range []string{"clientConnection", "enableProfiling", "enableContentionProfiling"} {
		require.NotNil(t, ours[field])
		delete(ours, field)
	}
	for _, field := range []string{"leaseDuration", "renewDeadline", "retryPeriod"} {
		delete(ours["leaderElection"].(map[string]any), field)
	}
	profile := ours["profiles"].([]any)[0].(map[string]any)
	isJobQueue := func(v any) bool { return v.(map[string]any)["name"] == "JobQueue" }

	args := profile["pluginConfig"].([]any)
	require.True(t, slices.ContainsFunc(args, isJobQueue))
	profile["pluginConfig"] = slices.DeleteFunc(args, isJobQueue)

	plugins := profile["plugins"].(map[string]any)
	enabled := func(point string) []any { return plugins[point].(map[string]any)["enabled"].([]any) }
	require.True(t, isJobQueue(enabled("preFilter")[0]), "first")
	require.True(t, isJobQueue(enabled("reserve")[len(enabled("reserve"))-1]), "last")
	require.Equal(t, []any{map[string]any{"name": "JobQueue"}}, enabled("queueSort"))
	for _, point := range []string{"preEnqueue", "preFilter", "reserve", "preBind"} {
		require.True(t, slices.ContainsFunc(enabled(point), isJobQueue), point)
		plugins[point].(map[string]any)["enabled"] = slices.DeleteFunc(enabled(point), isJobQueue)
	}
	plugins["queueSort"].(map[string]any)["enabled"] = []any{map[string]any{"name": "PrioritySort"}}

	require.Equal(t, koordinatorchart.Config(t), ours)
}

func readYAML(t *testing.T, file string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, yaml.Unmarshal(raw, &out))
	return out
}

// TestSchedulerConfigReachesTheScheduler: the copy is current.
func TestSchedulerConfigReachesTheScheduler(t *testing.T) {
	source, err := os.ReadFile("../scheduler-config.yaml")
	require.NoError(t, err)
	cm := decode[corev1.ConfigMap](t, find(t, build(t, "overlays/default"), "ConfigMap", "koord-jobqueue-scheduler"))
	require.Equal(t, string(source), cm.Data["scheduler-config.yaml"], "run hack/generate.sh")
}

// TestWhatIsMountedIsThere: each Deployment finds the file of its --config in the ConfigMap that it mounts.
func TestWhatIsMountedIsThere(t *testing.T) {
	built := build(t, "overlays/default")
	for _, name := range []string{"koord-jobqueue-scheduler", "jobqueue-controller"} {
		d := decode[appsv1.Deployment](t, find(t, built, "Deployment", name))
		pod := d.Spec.Template.Spec
		cm := decode[corev1.ConfigMap](t, find(t, built, "ConfigMap", pod.Volumes[0].ConfigMap.Name))
		require.Equal(t, d.Namespace, cm.Namespace)
		mount := pod.Containers[0].VolumeMounts[0]
		require.Equal(t, pod.Volumes[0].Name, mount.Name)
		file, found := strings.CutPrefix(pod.Containers[0].Args[0], "--config="+mount.MountPath+"/")
		require.True(t, found)
		require.Contains(t, cm.Data, file)
	}
}

// TestProcessesMayReadWhatIsMounted: kubelet makes files for root, and for the fsGroup. A process that is not root
// reads a file that others may not read by its group.
func TestProcessesMayReadWhatIsMounted(t *testing.T) {
	built, secrets := build(t, "overlays/default"), 0
	for _, name := range []string{"koord-jobqueue-scheduler", "jobqueue-controller"} {
		pod := decode[appsv1.Deployment](t, find(t, built, "Deployment", name)).Spec.Template.Spec
		for _, volume := range pod.Volumes {
			if volume.Secret == nil {
				continue
			}
			secrets++
			mode := ptr.Deref(volume.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
			if mode&0o004 == 0 {
				require.Equal(t, pod.SecurityContext.RunAsGroup, pod.SecurityContext.FSGroup, volume.Name)
				require.NotZero(t, mode&0o040, volume.Name)
			}
		}
	}
	require.NotZero(t, secrets)
}

// TestThePageHasNoRights: the page has the rights of its callers alone. Its pod has no token, and its component no
// role. It reads its certificate by its group.
func TestThePageHasNoRights(t *testing.T) {
	built := build(t, "components/web")
	for _, r := range built.Resources() {
		require.Contains(t, []string{"Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"}, r.GetKind())
	}
	d := decode[appsv1.Deployment](t, find(t, built, "Deployment", "koord-jobqueue-web"))
	pod := d.Spec.Template.Spec
	require.False(t, *pod.AutomountServiceAccountToken)
	require.Empty(t, pod.ServiceAccountName)
	for _, volume := range pod.Volumes {
		switch {
		case volume.ConfigMap != nil:
			require.Equal(t, "kube-root-ca.crt", volume.ConfigMap.Name)
		default:
			require.NotNil(t, volume.Secret, volume.Name)
			require.EqualValues(t, 0o440, *volume.Secret.DefaultMode)
			require.Equal(t, pod.SecurityContext.RunAsGroup, pod.SecurityContext.FSGroup)
		}
	}
	service := decode[corev1.Service](t, find(t, built, "Service", "koord-jobqueue-web"))
	require.Equal(t, d.Spec.Template.Labels[nameLabel], service.Spec.Selector[nameLabel])
	require.Contains(t, pod.Containers[0].Args, "--host="+service.Name+"."+service.Namespace+".svc")
	o := webserver.Command(page.Plugin{})
	require.NoError(t, o.ParseFlags(pod.Containers[0].Args))
}

const nameLabel = "app.kubernetes.io/name"

// TestProcessesKnowTheirMemoryLimit: Go takes as much memory as twice what is in use, up to GOMEMLIMIT.
func TestProcessesKnowTheirMemoryLimit(t *testing.T) {
	built := build(t, "overlays/default")
	for _, name := range []string{"koord-jobqueue-scheduler", "jobqueue-controller"} {
		container := decode[appsv1.Deployment](t, find(t, built, "Deployment", name)).Spec.Template.Spec.Containers[0]
		require.NotZero(t, container.Resources.Limits.Memory().Value(), name)
		require.Contains(t, container.Env, corev1.EnvVar{Name: "GOMEMLIMIT", ValueFrom: &corev1.EnvVarSource{
			ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.memory"},
		}}, name)
	}
}

// TestHistoryHasAPlace: the documented path is on a volume, since the root file system is read-only.
func TestHistoryHasAPlace(t *testing.T) {
	page, err := os.ReadFile("../docs/operators/visibility.md")
	require.NoError(t, err)
	path := regexp.MustCompile(`path: (/\S+/history\.jsonl)`).FindSubmatch(page)
	require.NotNil(t, path)
	d := decode[appsv1.Deployment](t, find(t, build(t, "overlays/default"), "Deployment", "koord-jobqueue-scheduler"))
	require.True(t, slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == filepath.Dir(string(path[1])) && !m.ReadOnly
	}))
}

// TestLeadersDoNotOverlap: a leader has stopped and its last write is over before another one may lead; see
// engine.DefaultWriteTimeout.
func TestLeadersDoNotOverlap(t *testing.T) {
	raw, err := os.ReadFile("../scheduler-config.yaml")
	require.NoError(t, err)
	var config struct {
		LeaderElection struct{ LeaseDuration, RenewDeadline, RetryPeriod metav1.Duration }
	}
	require.NoError(t, yaml.Unmarshal(raw, &config))
	l := config.LeaderElection
	require.NotZero(t, l.RetryPeriod.Duration)
	require.Less(t, 2*l.RenewDeadline.Duration+l.RetryPeriod.Duration+engine.DefaultWriteTimeout, l.LeaseDuration.Duration)
}

// TestTenancyReadsEveryKey: a label that the policies do not read would name a quota or queue without the right to it.
func TestTenancyReadsEveryKey(t *testing.T) {
	for file, keys := range map[string][]string{
		"quota": {"['" + strings.Join(v1alpha1.QuotaLabels[:], "', '") + "']\n"},
		"queue": {"['" + strings.Join(v1alpha1.QuotaLabels[:], "', '") + "']\n", "'" + v1alpha1.QueueNameKey + "' in m"},
	} {
		text, err := os.ReadFile("components/tenancy/" + file + ".yaml")
		require.NoError(t, err)
		for _, key := range keys {
			require.Contains(t, string(text), key, file)
		}
	}
}

// TestWhoAnswersChecksWritesNothingElse: the policy names every field of the status but the one that it is about, and
// the accounts that write the others.
func TestWhoAnswersChecksWritesNothingElse(t *testing.T) {
	built := build(t, "overlays/default")
	found := 0
	for _, r := range built.Resources() {
		if r.GetName() != "jobqueue-unit-status" {
			continue
		}
		found++
		if r.GetKind() == "ValidatingAdmissionPolicyBinding" {
			binding := decode[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, r)
			require.Contains(t, binding.Spec.ValidationActions, admissionregistrationv1.Deny)
			continue
		}
		policy := decode[admissionregistrationv1.ValidatingAdmissionPolicy](t, r)
		for _, account := range []string{schedulerAccount, controllerAccount} {
			require.Contains(t, policy.Spec.MatchConditions[0].Expression,
				"'system:serviceaccount:"+strings.ReplaceAll(account, "/", ":")+"'")
		}
		for _, field := range reflect.VisibleFields(reflect.TypeFor[v1alpha1.QueueUnitStatus]()) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			compared := "object.?status." + name + " == oldObject.?status." + name
			text := strings.Join(strings.Fields(policy.Spec.Validations[0].Expression), " ")
			require.Equal(t, name != "admissionChecks", strings.Contains(text+" ", compared+" "), name)
		}
	}
	require.Equal(t, 2, found)
}

// TestTenancyHasTheModeOfItsDirectory: overlays/default warns, overlays/enforced refuses, and a kind that is added to
// either has a directory for it. The directory without a word refuses.
func TestTenancyHasTheModeOfItsDirectory(t *testing.T) {
	warn := []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn, admissionregistrationv1.Audit}
	deny := []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	bindings := func(built resmap.ResMap, want []admissionregistrationv1.ValidationAction) (found int) {
		for _, r := range built.Resources() {
			if r.GetKind() == "ValidatingAdmissionPolicyBinding" && strings.HasPrefix(r.GetName(), "jobqueue-tenancy-") {
				found++
				binding := decode[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, r)
				require.Equal(t, want, binding.Spec.ValidationActions)
			}
		}
		return found
	}
	require.Equal(t, 15, bindings(build(t, "overlays/default"), warn))
	require.Equal(t, 15, bindings(build(t, "overlays/enforced"), deny))
	for _, kind := range jobkind.Builtin() {
		at := "components/kinds/" + kind.File()
		found := bindings(build(t, at), deny)
		if found > 0 {
			require.Equal(t, found, bindings(build(t, "components/kinds-warn/"+kind.File()), warn), at)
		}
		switch kind.File() {
		case "job":
			require.Zero(t, found, "components/tenancy has them")
		case "pod":
			require.Equal(t, 2, found, "components/tenancy has those of quotas and of what pods are")
		case "trainjob":
			require.GreaterOrEqual(t, found, 3, at)
		default:
			require.Equal(t, 5, found, at)
		}
	}
}

// TestTenancyOfKindsIsThatOfJobs: the policies of a kind differ from those of Jobs in what they look at.
func TestTenancyOfKindsIsThatOfJobs(t *testing.T) {
	namespaces := map[string]*metav1.LabelSelector{}
	policies := func(dir string) map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec {
		found := map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec{}
		for _, r := range build(t, dir).Resources() {
			switch r.GetKind() {
			case "ValidatingAdmissionPolicy":
				p := decode[admissionregistrationv1.ValidatingAdmissionPolicy](t, r)
				found[strings.TrimSuffix(p.Name, "-"+filepath.Base(dir))] = p.Spec
			case "ValidatingAdmissionPolicyBinding":
				b := decode[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, r)
				if b.Spec.MatchResources != nil {
					namespaces[b.Name] = b.Spec.MatchResources.NamespaceSelector
				}
			}
		}
		return found
	}
	variable := func(p admissionregistrationv1.ValidatingAdmissionPolicySpec, name string) string {
		i := slices.IndexFunc(p.Variables, func(v admissionregistrationv1.Variable) bool { return v.Name == name })
		require.NotEqual(t, -1, i, name)
		return p.Variables[i].Expression
	}
	ofJobs := policies("components/tenancy")
	require.NotNil(t, namespaces["jobqueue-tenancy-quota"])
	ofQuota := []string{"user", "account", "byName", "line", "above"}
	for i := range quotapath.MostAbove {
		ofQuota = append(ofQuota, fmt.Sprintf("by%d", i))
	}
	for _, same := range ofQuota {
		require.Equal(t, variable(ofJobs["jobqueue-tenancy-quota"], same), variable(ofJobs["jobqueue-tenancy-pod"], same))
	}
	for _, kind := range jobkind.Builtin() {
		for name, p := range policies("components/kinds/" + kind.File()) {
			of, ok := ofJobs[name]
			require.True(t, ok, name)
			who, _, _ := strings.Cut(ofJobs["jobqueue-tenancy-quota"].MatchConditions[0].Expression, " && [object")
			require.Len(t, p.MatchConditions, 1, "all of them are evaluated")
			require.Contains(t, p.MatchConditions[0].Expression+" ", who+" ")
			require.Nil(t, p.MatchConstraints.NamespaceSelector, "it would be read for each write of anything")
			require.Equal(t, namespaces["jobqueue-tenancy-quota"], namespaces[name+"-"+kind.File()], name)
			switch name {
			case "jobqueue-tenancy-quota", "jobqueue-tenancy-queue":
				rights := []string{"byUser", "byNamespace"}
				if name == "jobqueue-tenancy-quota" {
					rights = ofQuota
				}
				for _, same := range rights {
					require.Equal(t, variable(of, same), variable(p, same))
				}
				require.Equal(t, of.Validations, p.Validations[len(p.Validations)-len(of.Validations):], name)
				require.Equal(t, variable(ofJobs["jobqueue-tenancy-quota"], "keys"), variable(p, "keys"))
			case "jobqueue-tenancy-template":
				require.Equal(t, variable(of, "seconds"), variable(p, "seconds"))
				messages := func(rules []admissionregistrationv1.Validation) (messages []string) {
					for _, rule := range rules {
						messages = append(messages, rule.Message)
					}
					return messages
				}
				require.Equal(t, messages(of.Validations), messages(p.Validations[len(p.Validations)-len(of.Validations):]))
			}
		}
	}
}
