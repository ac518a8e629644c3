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

// Package kinds is "kubectl jobqueue kinds". It lists the kinds of jobs, and shows the unit that a description of a
// kind makes of a job.
package kinds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/served"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/tenancy"
)

// options are the flags of the commands about kinds.
type options struct {
	cluster        *genericclioptions.ConfigFlags
	managed        string
	ofCluster      bool
	warn           bool
	queueNamespace string
	file           string
	child          string
}

// Command is kubectl jobqueue kinds. The flags say how it reaches the cluster.
func Command(cluster *genericclioptions.ConfigFlags) *cobra.Command {
	o := &options{cluster: cluster}
	root := &cobra.Command{
		Use:   "kinds",
		Short: "Show the kinds of jobs that can be queued, and try a description of one",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&o.managed, "managed-jobs", "",
		"file with the value of the key "+managedjobs.Key+" of the ConfigMap, whose kinds are known too")
	list := &cobra.Command{
		Use:   "list",
		Short: "List the kinds that are known",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.list(cmd.Context(), cmd.OutOrStdout()) },
	}
	list.Flags().BoolVar(&o.ofCluster, "cluster", false,
		"ask the cluster which of them are managed there, and which can be")
	list.Flags().StringVar(&o.queueNamespace, "queue-namespace", v1alpha1.DefaultQueueNamespace,
		"with --cluster: the namespace of the ConfigMap of managed jobs")
	show := &cobra.Command{
		Use:     "show KIND",
		Short:   "Print the description of a kind",
		Example: "  kubectl jobqueue kinds show PyTorchJob.v1.kubeflow.org",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.show(cmd.OutOrStdout(), args[0]) },
	}
	test := &cobra.Command{
		Use:   "test -f JOB",
		Short: "Say what is read of a job, and what would be written into it",
		Long: `test reads an object from a file, as kubectl get -o yaml prints it. It shows the groups of pods, their requests
and the state that the kind reads of the object, and what admission would write into it. Nothing is sent anywhere.
Additions of the cluster to pods, such as defaults of LimitRanges, are not counted.`,
		Example: "  kubectl jobqueue kinds test -f job.yaml --managed-jobs=kinds.yaml",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.test(cmd.InOrStdin(), cmd.OutOrStdout()) },
	}
	test.Flags().StringVarP(&o.file, "filename", "f", "", "file with the object; - is standard input")
	test.Flags().StringVar(&o.child, "child", "",
		"file with the child that is read with it, such as the JobSet of a TrainJob")
	rights := &cobra.Command{
		Use:     "rights KIND",
		Short:   "Print the roles that controller and scheduler need for a kind, to apply",
		Example: "  kubectl jobqueue kinds rights PyTorchJob | kubectl apply -f -",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.rights(cmd.OutOrStdout(), args[0]) },
	}
	policy := &cobra.Command{
		Use:   "policy KIND",
		Short: "Print the policies of who may charge which quota, and queue where, by jobs of a kind, to apply",
		Long: `policy prints for a kind what manifests/components/tenancy has for Jobs. Without it, any writer of such
an object charges its pods to any quota. Built-in kinds have theirs in manifests/components/kinds.

The policies refuse. With --warn they warn the client, for an installation whose other policies warn.`,
		Example: "  kubectl jobqueue kinds policy Train.v1.example.com --managed-jobs=kinds.yaml | kubectl apply -f -",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.policy(cmd.OutOrStdout(), args[0]) },
	}
	policy.Flags().BoolVar(&o.warn, "warn", false, "print policies that warn, instead of policies that refuse")
	root.AddCommand(list, show, test, rights, policy)
	return root
}

// kinds are the built-in ones, and those of the configuration that is given. These replace or add to the built-in ones.
func (o *options) kinds() ([]jobkind.Kind, error) {
	if o.managed == "" {
		return jobkind.Builtin(), nil
	}
	text, err := os.ReadFile(o.managed)
	if err != nil {
		return nil, err
	}
	m, err := managedjobs.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.managed, err)
	}
	p, err := managedjobs.NewPredicate(m)
	if err != nil {
		return nil, err
	}
	return WithBuiltin(p.Kinds()), nil
}

// WithBuiltin are these kinds, and those that are built in and not among them.
func WithBuiltin(configured []jobkind.Kind) []jobkind.Kind {
	kinds := jobkind.Builtin()
	for _, kind := range configured {
		if i := slices.IndexFunc(kinds, func(k jobkind.Kind) bool { return k.GVK == kind.GVK }); i >= 0 {
			kinds[i] = kind
			continue
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

func (o *options) list(ctx context.Context, out io.Writer) error {
	kinds, err := o.kinds()
	if err != nil {
		return err
	}
	columns := func(*jobkind.Kind) string { return "" }
	header := ""
	if o.ofCluster {
		if columns, err = o.ask(ctx); err != nil {
			return err
		}
		header = "\tMANAGED\tAVAILABLE"
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tRESOURCE\tSUSPENDED BY"+header)
	for i := range kinds {
		k := &kinds[i]
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", k, k.GVR.GroupResource(), suspendedBy(k), columns(k))
	}
	return w.Flush()
}

// neverSuspended stands for how a job is suspended that cannot be.
const neverSuspended = "- (its pods wait)"

func suspendedBy(k *jobkind.Kind) string {
	switch {
	case !k.CanBeSuspended():
		return neverSuspended
	case len(k.SuspendField) > 0:
		return k.SuspendField.String()
	default:
		return "annotation " + k.SuspendAnnotation
	}
}

// ask is what the cluster says of a kind.
func (o *options) ask(ctx context.Context) (func(*jobkind.Kind) string, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	m, err := controller.ReadManagedJobs(ctx, live, o.queueNamespace)
	if err != nil {
		return nil, err
	}
	p, err := managedjobs.NewPredicate(m)
	if err != nil {
		return nil, err
	}
	index, err := served.New(config, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	if err := index.Look(); err != nil {
		return nil, err
	}
	return func(k *jobkind.Kind) string {
		managed := "no"
		if p.ManagesKind(k.GVK) {
			managed = "yes"
		}
		answer := index.Kinds([]jobkind.Kind{*k})[0]
		text := string(answer.Availability)
		switch {
		case answer.Err != nil:
			text = "unknown (" + answer.Err.Error() + ")"
		case answer.Reason != "":
			text += " (" + answer.Reason + ")"
		}
		return "\t" + managed + "\t" + text
	}, nil
}

var errNoSuchKind = errors.New("no kind has this name; see kubectl jobqueue kinds list")

// find the kind of this name. The name alone, without version and group, is enough where one kind has it.
func (o *options) find(name string) (*jobkind.Kind, error) {
	kinds, err := o.kinds()
	if err != nil {
		return nil, err
	}
	var found []*jobkind.Kind
	for i := range kinds {
		if kinds[i].String() == name {
			return &kinds[i], nil
		}
		if strings.EqualFold(kinds[i].GVK.Kind, name) {
			found = append(found, &kinds[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%q: %w", name, errNoSuchKind)
	case 1:
		return found[0], nil
	default:
		return nil, fmt.Errorf("%q: which of %s and %s?", name, found[0], found[1])
	}
}

func (o *options) show(out io.Writer, name string) error {
	kind, err := o.find(name)
	if err != nil {
		return err
	}
	if kind.Text() == nil {
		return fmt.Errorf("%s is described in %s", kind, o.managed)
	}
	fmt.Fprintf(out, "%s", kind.Text())
	return nil
}

func (o *options) rights(out io.Writer, name string) error {
	kind, err := o.find(name)
	if err != nil {
		return err
	}
	text, err := kind.RightsManifest(objectName(kind))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s", text)
	return nil
}

func (o *options) policy(out io.Writer, name string) error {
	kind, err := o.find(name)
	if err != nil {
		return err
	}
	actions := tenancy.Deny
	if o.warn {
		actions = tenancy.Warn
	}
	text, err := tenancy.Manifest(kind, objectName(kind), actions)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s", text)
	return nil
}

// objectName tells objects that are made for the kind from those for others.
func objectName(kind *jobkind.Kind) string {
	if kind.File() != "" {
		return kind.File()
	}
	return strings.ToLower(kind.String())
}

func (o *options) test(in io.Reader, out io.Writer) error {
	if o.file == "" {
		return errors.New("which job? Name its file with -f")
	}
	kinds, err := o.kinds()
	if err != nil {
		return err
	}
	job, err := readObject(o.file, in)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(kinds, func(k jobkind.Kind) bool { return k.GVK == job.GroupVersionKind() })
	if i < 0 {
		return fmt.Errorf("%q: %w", jobkind.KindString(job.GroupVersionKind()), errNoSuchKind)
	}
	kind := &kinds[i]
	if kind.OfPods() {
		if job, err = groupOf(job); err != nil {
			return err
		}
	}
	var child *unstructured.Unstructured
	if o.child != "" {
		if child, err = readObject(o.child, in); err != nil {
			return err
		}
	}
	if kind.Child != nil && child == nil {
		return fmt.Errorf("a %s has its pods in a %s of its name: name that file with --child", kind.GVK.Kind,
			kind.Child.GVK.Kind)
	}
	return describe(out, kind, jobs.WithChild(kind, job, child))
}

// groupOf a pod, as if it was all that there is of it.
func groupOf(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, pod); err != nil {
		return nil, err
	}
	return podgroup.Of([]*corev1.Pod{pod})
}

func readObject(file string, in io.Reader) (*unstructured.Unstructured, error) {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &object.Object); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if object.GetKind() == "" || object.GetAPIVersion() == "" {
		return nil, fmt.Errorf("%s: no object with apiVersion and kind", file)
	}
	return object, nil
}

// describe prints what is read of a job.
func describe(out io.Writer, kind *jobkind.Kind, job *unstructured.Unstructured) error {
	sets, err := jobs.Open(kind, job).PodSets()
	if err != nil {
		return err
	}
	quota, err := jobs.Open(kind, job).Quota()
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Kind:\t%s\nUnit:\t%s\nQuota:\t%s\nQueue:\t%s\n", kind, kind.UnitName(job.GetName()),
		orOf(quota, "namespace"), orOf(jobs.Open(kind, job).Queue(), "quota"))
	priority, err := jobs.Open(kind, job).Priority()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Priority:\t%s\n", priorityText(priority))
	by := suspendedBy(kind)
	if !jobs.CanBeSuspended(jobs.Open(kind, job)) {
		by = neverSuspended
	}
	fmt.Fprintf(w, "Suspended by:\t%s\n", by)
	fmt.Fprintf(w, "State:\t%s\n", stateText(kind, job))
	if why := jobs.Open(kind, job).Invalid(); why != "" {
		fmt.Fprintf(w, "Cannot be queued:\t%s\n", why)
	}
	for _, gang := range jobs.Gangs(jobs.Open(kind, job), false) {
		fmt.Fprintf(w, "Gang:\t%s, at least %d pods\n", strings.Join(gang.PodSets, ", "), gang.Minimum)
	}
	fmt.Fprintf(w, "Pods found by:\t%s\n", jobs.Open(kind, job).PodSelector())
	fmt.Fprintln(w, "\nPODS\tCOUNT\tAT LEAST\tEACH ASKS FOR")
	for i := range sets {
		request, err := (&podrequest.Creation{}).Request(sets[i].Template)
		if err != nil {
			return err
		}
		least := "-"
		if sets[i].Least != nil {
			least = fmt.Sprint(*sets[i].Least)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", sets[i].Name, sets[i].Count, least, amounts(request))
	}
	total, err := jobs.PodSetsRequest(sets, &podrequest.Creation{})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "all\t\t\t%s\n", amounts(total))
	if err := w.Flush(); err != nil {
		return err
	}
	return written(out, kind, job, sets)
}

// written prints what admission writes into the job.
func written(out io.Writer, kind *jobkind.Kind, job *unstructured.Unstructured, sets []jobs.PodSet) error {
	if !jobs.CanBeSuspended(jobs.Open(kind, job)) {
		fmt.Fprintln(out, "\nNothing is written into it: its pods wait in the scheduler.")
		return nil
	}
	after := job.DeepCopy()
	additions := map[string]jobs.Addition{}
	for i := range sets {
		additions[sets[i].Name] = jobs.Addition{
			Labels: map[string]string{v1alpha1.LabelQuotaName: "QUOTA"},
			Annotations: map[string]string{
				v1alpha1.AnnotationRelatedQueueUnit: after.GetNamespace() + "/" + kind.UnitName(after.GetName()),
				v1alpha1.AnnotationRelatedPodSet:    sets[i].Name,
			},
		}
	}
	for _, gang := range jobs.Gangs(jobs.Open(kind, job), false) {
		for _, set := range gang.PodSets {
			maps.Copy(additions[set].Annotations, gang.Annotations(kind.UnitName(after.GetName())))
		}
	}
	edit := jobs.EditOf(kind, after)
	if err := errors.Join(edit.AddToTemplates(additions), edit.SetSuspend(false)); err != nil {
		return err
	}
	before, child := jobs.Split(job)
	changed, changedChild := jobs.Split(after)
	fmt.Fprintln(out, "\nWhen it is admitted to a quota that its pods do not name, this is written into it:")
	printChanges(out, before.Object, changed.Object, "")
	if child != nil {
		fmt.Fprintf(out, "and into its %s:\n", child.GetKind())
		printChanges(out, child.Object, changedChild.Object, "")
	}
	return nil
}

// printChanges prints a line for each field that differs.
func printChanges(out io.Writer, before, after any, at string) {
	if equality.Semantic.DeepEqual(before, after) {
		return
	}
	switch a := after.(type) {
	case map[string]any:
		b, _ := before.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(a)) {
			step := "." + key
			if strings.ContainsAny(key, "./") {
				step = "[" + key + "]"
			}
			printChanges(out, b[key], a[key], at+step)
		}
		return
	case []any:
		if b, ok := before.([]any); ok && len(a) == len(b) {
			for i := range a {
				printChanges(out, b[i], a[i], fmt.Sprintf("%s[%d]", at, i))
			}
			return
		}
	}
	fmt.Fprintf(out, "  %s: %v\n", at, after)
}

// orOf is the name, or says what it follows from where the job names none.
func orOf(name, of string) string {
	if name == "" {
		return "- (that of the " + of + ")"
	}
	return name
}

func priorityText(p jobs.Priority) string {
	switch {
	case p.Value != nil:
		return fmt.Sprint(*p.Value)
	case p.Class != "":
		return "class " + p.Class
	default:
		return "- (the default of the cluster)"
	}
}

func stateText(kind *jobkind.Kind, job *unstructured.Unstructured) string {
	end, ended := jobs.Open(kind, job).Ended()
	switch {
	case ended && end.Succeeded:
		return "succeeded: " + end.Message
	case ended:
		return "failed: " + end.Message
	case jobs.Open(kind, job).Suspended() && jobs.Open(kind, job).SuspensionSeen():
		return "suspended, and its operator knows it"
	case jobs.Open(kind, job).Suspended():
		return "suspended"
	case jobs.Open(kind, job).Running() > 0:
		return fmt.Sprintf("runs (%d)", jobs.Open(kind, job).Running())
	case jobs.Open(kind, job).Started():
		return "started"
	default:
		return "not started"
	}
}

func amounts(list corev1.ResourceList) string {
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	parts := make([]string, 0, len(names))
	for _, name := range names {
		quantity := list[corev1.ResourceName(name)]
		parts = append(parts, name+"="+quantity.String())
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}
