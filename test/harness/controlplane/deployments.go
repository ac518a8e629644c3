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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// deployments runs the processes of an installation, with the arguments, files and Services of its objects. It plays
// the controller of Deployments, kubelet and kube-proxy, because the nodes of KWOK run nothing.
type deployments struct {
	cp       *ControlPlane
	client   kubernetes.Interface
	replicas map[Component]*replica
	services map[string]*service // by address
}

// service passes connections on to the replicas behind a Service.
type service struct {
	net.Listener
	selector labels.Selector
	backends atomic.Pointer[[]string]
}

// replica is a process of a Deployment.
type replica struct {
	template string // of which it was made
	labels   labels.Set
	port     int // of the aggregated API
	started  time.Time
}

// programs by the end of the name of an image, without the tag; the longest end counts. Koordinator's own scheduler is
// there if somebody has built it.
var programs = map[string]string{
	"koord-scheduler": "koord-scheduler", "jobqueue-controller": "jobqueue-controller",
	"koordinator-sh/koord-scheduler": "stock-scheduler",
}

// RunDeployments starts a process for each replica of the Deployments in koordinator-system and koord-queue. It ends
// processes of replicas that are gone, and starts a process again that ends by itself. It works until ctx ends.
// Options.Progress gets each start and end. It gets an error once while the error stays the same.
//
// A process differs from a container in two points. It listens on loopback, on a port of its own. Its kubeconfig has
// the token of its service account.
func (c *ControlPlane) RunDeployments(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.RESTConfig(Admin))
	if err != nil {
		return err
	}
	d := &deployments{
		cp: c, client: client, replicas: map[Component]*replica{}, services: map[string]*service{},
	}
	told := ""
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		if c.ended() {
			return
		}
		text := ""
		if err := d.sync(ctx); err != nil && ctx.Err() == nil && !c.ended() {
			text = err.Error()
		}
		if text != "" && text != told {
			c.opts.Progress(text)
		}
		told = text
	}, syncInterval)
	return nil
}

func (d *deployments) sync(ctx context.Context) error {
	wanted := map[Component]*appsv1.Deployment{}
	for _, namespace := range []string{"koordinator-system", "koord-queue"} {
		list, err := d.client.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			for n := range ptr.Deref(list.Items[i].Spec.Replicas, 1) {
				wanted[replicaName(&list.Items[i], n)] = &list.Items[i]
			}
		}
	}
	var errs []error
	for name, r := range d.replicas {
		if of := wanted[name]; of == nil || templateOf(of) != r.template && d.othersAreReady(name, of) {
			d.cp.opts.Progress("ends " + string(name))
			errs = append(errs, d.cp.StopComponent(name))
			delete(d.replicas, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err := d.run(ctx, name, wanted[name]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(append(errs, d.serve(ctx))...)
}

// othersAreReady says that the other replicas of a Deployment have worked for a while, so that one may be replaced.
func (d *deployments) othersAreReady(name Component, of *appsv1.Deployment) bool {
	minReady := time.Duration(of.Spec.MinReadySeconds) * time.Second
	for n := range ptr.Deref(of.Spec.Replicas, 1) {
		other := replicaName(of, n)
		r := d.replicas[other]
		if other == name {
			continue
		}
		if r == nil || !d.cp.Running(other) || d.cp.opts.Clock.Since(r.started) < minReady {
			return false
		}
		for _, s := range d.services {
			if s.selector.Matches(r.labels) && !answers(r.port) {
				return false
			}
		}
	}
	return true
}

const syncInterval = 500 * time.Millisecond

func replicaName(of *appsv1.Deployment, n int32) Component {
	return Component(fmt.Sprintf("%s-%d", of.Name, n))
}

// templateOf is the text by which a change of the pod template is seen.
func templateOf(of *appsv1.Deployment) string {
	text, err := json.Marshal(of.Spec.Template)
	if err != nil {
		panic(err) // the template was read as JSON
	}
	return string(text)
}

// run mounts the volumes of a replica, as they are now, and starts it unless it runs.
func (d *deployments) run(ctx context.Context, name Component, of *appsv1.Deployment) error {
	container := &of.Spec.Template.Spec.Containers[0]
	program := programOf(container.Image)
	if program == "" {
		return fmt.Errorf("there is no program for the image %s", container.Image)
	}
	m, err := d.cp.managed(name, program)
	if err != nil {
		return err
	}
	r := d.replicas[name]
	if r == nil {
		port, err := allPorts.next()
		if err != nil {
			return err
		}
		r = &replica{template: templateOf(of), labels: of.Spec.Template.Labels, port: port}
	}
	local, err := d.mount(ctx, name, of, r.port)
	if err != nil || d.cp.Running(name) {
		return err
	}
	for _, arg := range container.Args {
		m.args = append(m.args, local(arg))
	}
	if err := d.cp.keepLocal(m, Identity(of.Spec.Template.Spec.ServiceAccountName)); err != nil {
		return err
	}
	for _, variable := range container.Env {
		if from := variable.ValueFrom; from != nil && from.ResourceFieldRef != nil {
			limit := container.Resources.Limits.Memory().Value()
			m.env = append(m.env, variable.Name+"="+strconv.FormatInt(limit, 10))
		}
	}
	d.cp.opts.Progress("starts " + string(name))
	d.replicas[name], r.started = r, d.cp.opts.Clock.Now()
	if err := d.cp.register(m); err != nil {
		return err
	}
	return m.start()
}

// programOf an image; "" if there is none.
func programOf(image string) (program string) {
	found := ""
	for end, path := range programs {
		if strings.HasSuffix("/"+imageTag.ReplaceAllString(image, ""), "/"+end) && len(end) > len(found) {
			program, found = path, end
		}
	}
	return program
}

var imageTag = regexp.MustCompile(`[:@][^/]*$`)

// keepLocal has a scheduler or controller listen on loopback and take its token from a kubeconfig, which a container
// does not.
func (c *ControlPlane) keepLocal(m *managed, identity Identity) error {
	secure, err := allPorts.next()
	if err != nil {
		return err
	}
	plain, err := allPorts.next()
	if err != nil {
		return err
	}
	kubeconfig := c.Kubeconfig(identity)
	m.secureURL = loopbackURL(secure)
	if identity == ControllerIdentity {
		m.args = append(m.args, "--kubeconfig="+kubeconfig, "--metrics-bind-address="+hostPort(secure),
			"--health-probe-bind-address="+hostPort(plain))
		m.ready = httpOK(http.DefaultClient, "http://"+hostPort(plain)+"/readyz", "")
		return nil
	}
	m.args = append(m.args, "--address="+loopback, fmt.Sprintf("--port=%d", plain),
		"--bind-address="+loopback, fmt.Sprintf("--secure-port=%d", secure),
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
	m.url = "http://" + hostPort(plain)
	// healthz answers long before anything is scheduled; this path does not.
	m.ready = httpOK(http.DefaultClient, m.url+"/apis/v1/__services__", "")
	return nil
}

// mount writes the files of ConfigMaps and Secrets, and returns what has a text name their directories here.
func (d *deployments) mount(
	ctx context.Context, name Component, of *appsv1.Deployment, port int,
) (local func(string) string, err error) {
	pod, files, dirs := &of.Spec.Template.Spec, map[string]string{}, map[string]string{}
	var paths []string
	for _, m := range pod.Containers[0].VolumeMounts {
		dir := filepath.Join(d.cp.opts.Dir, "volumes", string(name), m.Name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		dirs[m.MountPath], paths = dir, append(paths, regexp.QuoteMeta(m.MountPath))
		at := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
		content, err := d.contentOf(ctx, of.Namespace, &pod.Volumes[at])
		if err != nil {
			return nil, err
		}
		for file, text := range content {
			files[filepath.Join(dir, file)] = text
		}
	}
	mounted := regexp.MustCompile(`(?m)(^|[ "'=])(` + strings.Join(paths, "|") + `)($|[ "'/])`)
	local = func(text string) string {
		return mounted.ReplaceAllStringFunc(text, func(path string) string {
			parts := mounted.FindStringSubmatch(path)
			return parts[1] + dirs[parts[2]] + parts[3]
		})
	}
	for path, text := range files {
		if err := writeChanged(path, d.cp.configured(local(text), port)); err != nil {
			return nil, err
		}
	}
	return local, nil
}

// contentOf has the files of a volume.
func (d *deployments) contentOf(ctx context.Context, namespace string, v *corev1.Volume) (map[string]string, error) {
	switch {
	case v.ConfigMap != nil:
		from, err := d.client.CoreV1().ConfigMaps(namespace).Get(ctx, v.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		files := map[string]string{}
		for _, item := range v.ConfigMap.Items {
			files[item.Path] = from.Data[item.Key]
		}
		if len(files) == 0 {
			return from.Data, nil
		}
		return files, nil
	case v.Secret != nil:
		from, err := d.client.CoreV1().Secrets(namespace).Get(ctx, v.Secret.SecretName, metav1.GetOptions{})
		if ptr.Deref(v.Secret.Optional, false) && apierrors.IsNotFound(err) {
			return nil, nil
		}
		files := map[string]string{}
		for _, item := range v.Secret.Items {
			if content := from.Data[item.Key]; len(content) > 0 {
				files[item.Path] = string(content)
			}
		}
		return files, err
	}
	return nil, nil
}

// configured has a configuration of the scheduler name the kubeconfig, and serve the aggregated API on loopback.
func (c *ControlPlane) configured(text string, port int) string {
	config := map[string]any{}
	if yaml.Unmarshal([]byte(text), &config) != nil || config["kind"] != "KubeSchedulerConfiguration" {
		return text
	}
	section(config, "clientConnection")["kubeconfig"] = c.Kubeconfig(SchedulerIdentity)
	visibility := section(JobQueueArgs(config), "visibility")
	visibility["bindAddress"] = loopback
	if visibility["port"] != 0.0 {
		visibility["port"] = port
	}
	out, err := yaml.Marshal(config)
	if err != nil {
		panic(err) // the configuration was read as YAML
	}
	return string(out)
}

func writeChanged(path, text string) error {
	if is, err := os.ReadFile(path); err == nil && string(is) == text {
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// serve has the Services of replicas answer. Cluster IPs are loopback addresses here. An EndpointSlice must not name
// such an address, and the API server wants one, so it names an address that nobody has.
func (d *deployments) serve(ctx context.Context) error {
	list, err := d.client.CoreV1().Services("koordinator-system").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	for i := range list.Items {
		s := &list.Items[i]
		if len(s.Spec.Ports) != 1 || s.Spec.Ports[0].TargetPort.IntValue() != ShippedVisibilityPort {
			continue
		}
		address := net.JoinHostPort(s.Spec.ClusterIP, strconv.Itoa(int(s.Spec.Ports[0].Port)))
		selector, backends := labels.SelectorFromSet(s.Spec.Selector), []string(nil)
		for _, r := range d.replicas {
			if selector.Matches(r.labels) && answers(r.port) {
				backends = append(backends, hostPort(r.port))
			}
		}
		if wanted[address] = true; d.services[address] != nil {
			d.services[address].backends.Store(&backends)
			continue
		}
		if len(backends) == 0 {
			continue
		}
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: s.Namespace, Name: s.Name, Labels: map[string]string{discoveryv1.LabelServiceName: s.Name},
			},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
			Ports: []discoveryv1.EndpointPort{{Name: &s.Spec.Ports[0].Name, Port: &s.Spec.Ports[0].Port}},
		}
		_, err := d.client.DiscoveryV1().EndpointSlices(s.Namespace).Create(ctx, slice, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			return err
		}
		d.services[address] = &service{Listener: listener, selector: selector}
		d.services[address].backends.Store(&backends)
		context.AfterFunc(ctx, func() { _ = listener.Close() })
		go d.services[address].pass()
	}
	for address, s := range d.services {
		if !wanted[address] {
			_ = s.Close()
			delete(d.services, address)
		}
	}
	return nil
}

// answers says that somebody listens on a port.
func answers(port int) bool {
	connection, err := net.Dial("tcp", hostPort(port))
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}

// pass gives each connection to a random backend that takes it, until the listener is closed.
func (s *service) pass() {
	for {
		from, err := s.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close() //nolint:errcheck // nobody hears of it
			backends := *s.backends.Load()
			for _, i := range rand.Perm(len(backends)) {
				to, err := net.Dial("tcp", backends[i])
				if err != nil {
					continue
				}
				go func() {
					_, _ = io.Copy(to, from)
					_ = to.Close()
				}()
				_, _ = io.Copy(from, to)
				return
			}
		}()
	}
}
