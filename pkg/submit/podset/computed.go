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

package podset

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// Computed makes a pod template where the job has none, or has but a part of it.
type Computed struct {
	// Make gets the job and the object that the pod set is in; it changes neither.
	Make func(job, object map[string]any) (map[string]any, error)
	// Reads are the fields that it looks at.
	Reads []Source
}

// ComputedTemplates by the names that descriptors have for them.
var ComputedTemplates = map[string]Computed{
	"raySubmitter":        {Make: raySubmitter},
	"requestOfAnnotation": {Make: requestOfAnnotation},
	"sparkDriver":         {Make: sparkTemplate("driver", "driver"), Reads: sparkReads},
	"sparkExecutor":       {Make: sparkTemplate("executor", "executor"), Reads: sparkReads},
}

// annotationMinResources is what a Workflow says that it needs at once; it is the annotation of Koord-Queue.
const annotationMinResources = "koord-queue/min-resources"

// requestOfAnnotation is a template of one container with the requests of the annotation, a list of resources in YAML
// or JSON. Without the annotation it requests nothing.
func requestOfAnnotation(job, _ map[string]any) (map[string]any, error) {
	text, _ := Lookup(job, Path{"metadata", "annotations", annotationMinResources}).(string)
	requests := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &requests); err != nil {
		return nil, fmt.Errorf("%w: annotation %s: %w", ErrMalformed, annotationMinResources, err)
	}
	container := map[string]any{"name": "default"}
	if len(requests) > 0 {
		container["resources"] = map[string]any{"requests": requests}
	}
	return map[string]any{"spec": map[string]any{"containers": []any{container}}}, nil
}

// raySubmitter is the pod that KubeRay submits a job with where the RayJob has no template for it, as
// GetDefaultSubmitterTemplate of KubeRay 1.4 does.
func raySubmitter(_, _ map[string]any) (map[string]any, error) {
	return map[string]any{"spec": map[string]any{
		"restartPolicy": "Never",
		"containers": []any{map[string]any{
			"name": "ray-job-submitter",
			"resources": map[string]any{
				"requests": map[string]any{"cpu": "500m", "memory": "200Mi"},
				"limits":   map[string]any{"cpu": "1", "memory": "1Gi"},
			},
		}},
	}}, nil
}

// sparkReads are the fields of a SparkApplication that say what its pods ask for.
var sparkReads = []Source{
	{Path: PathOf(".cores")}, {Path: PathOf(".coreRequest")}, {Path: PathOf(".coreLimit")}, {Path: PathOf(".memory")},
	{Path: PathOf(".memoryOverhead")}, {Path: PathOf(".gpu")}, {Path: PathOf(".priorityClassName")},
	{Path: PathOf(".schedulerName")}, {Path: PathOf(".runtimeClassName")},
	{Path: PathOf(".terminationGracePeriodSeconds")},
	{Path: PathOf(".nodeSelector")}, {Path: PathOf(".tolerations")}, {Path: PathOf(".affinity")},
	{Path: PathOf(".template")},
	{Path: PathOf(".sidecars")}, {Path: PathOf(".initContainers")},
	{Path: PathOf(".spec.memoryOverheadFactor"), OfJob: true}, {Path: PathOf(".spec.type"), OfJob: true},
	{Path: PathOf(".spec.batchScheduler"), OfJob: true}, {Path: PathOf(".spec.batchSchedulerOptions"), OfJob: true},
	{Path: PathOf(".spec.nodeSelector"), OfJob: true}, {Path: PathOf(".spec.sparkConf"), OfJob: true},
}

const (
	// minSparkOverhead is the least that Spark adds to the memory of a container, in MiB.
	minSparkOverhead = 384
	// overheadJVM and overheadOther are the parts of the memory that it adds where the application says nothing.
	overheadJVM, overheadOther = 0.1, 0.4
)

// sparkTemplate is what spark-submit makes of the driver's or the executor's section: requests are computed, as
// BasicDriverFeatureStep and BasicExecutorFeatureStep of Spark 3.5 do.
func sparkTemplate(role, container string) func(job, object map[string]any) (map[string]any, error) {
	name := "spark-kubernetes-" + container
	return func(job, object map[string]any) (map[string]any, error) {
		resources, err := sparkResources(job, object)
		if err != nil {
			return nil, fmt.Errorf("%w: .spec.%s: %w", ErrMalformed, role, err)
		}
		template := deepCopy(Lookup(object, Path{"template"}))
		spec, _ := template["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
			template["spec"] = spec
		}
		sparkScheduling(role, job, object, spec)
		containers, _ := spec["containers"].([]any)
		main := map[string]any{"name": name}
		if len(containers) > 0 {
			if first, ok := containers[0].(map[string]any); ok {
				main = first
			}
			containers = containers[1:]
		}
		main["resources"] = resources
		spec["containers"] = withContainers(append([]any{main}, containers...), object["sidecars"])
		if inits := withContainers(spec["initContainers"], object["initContainers"]); len(inits) > 0 {
			spec["initContainers"] = inits
		}
		return template, nil
	}
}

// withContainers appends those that are not there yet, as the webhook of spark-operator does.
func withContainers(list, more any) []any {
	have, _ := list.([]any)
	others, _ := more.([]any)
	name := func(container any) [2]any {
		fields, _ := container.(map[string]any)
		return [2]any{fields["name"], fields["image"]}
	}
	for _, container := range others {
		if !slices.ContainsFunc(have, func(known any) bool { return name(known) == name(container) }) {
			have = append(have, container)
		}
	}
	return have
}

// sparkScheduling changes a template as Spark and the webhook of spark-operator do. Fields of the section replace most
// of it, and its tolerations are added. The template, the application and the section select nodes together.
func sparkScheduling(role string, job, section, spec map[string]any) {
	configuredScheduler(role, job, spec)
	for _, key := range []string{
		"priorityClassName", "schedulerName", "affinity", "runtimeClassName", "terminationGracePeriodSeconds",
	} {
		if value, ok := section[key]; ok {
			spec[key] = value
		}
	}
	tolerations, _ := spec["tolerations"].([]any)
	if more, ok := section["tolerations"].([]any); ok {
		spec["tolerations"] = append(tolerations, more...)
	}
	selector, _ := spec["nodeSelector"].(map[string]any)
	for _, more := range []any{Lookup(job, PathOf(".spec.nodeSelector")), section["nodeSelector"]} {
		fields, _ := more.(map[string]any)
		if selector == nil && len(fields) > 0 {
			selector = map[string]any{}
		}
		maps.Copy(selector, fields)
	}
	if selector != nil {
		spec["nodeSelector"] = selector
	}
	if class, ok := Lookup(job, PathOf(".spec.batchSchedulerOptions.priorityClassName")).(string); ok && class != "" {
		if spec["priorityClassName"] == nil {
			spec["priorityClassName"] = class
		}
	}
	if scheduler, ok := Lookup(job, PathOf(".spec.batchScheduler")).(string); ok && scheduler != "" {
		spec["schedulerName"] = scheduler // whatever the section says
	}
}

// configuredScheduler names the scheduler that the configuration of Spark has for the pods of a role.
func configuredScheduler(role string, job, spec map[string]any) {
	conf, _ := Lookup(job, PathOf(".spec.sparkConf")).(map[string]any)
	for _, key := range []string{"spark.kubernetes.scheduler.name", "spark.kubernetes." + role + ".scheduler.name"} {
		if name, ok := conf[key].(string); ok && name != "" {
			spec["schedulerName"] = name
		}
	}
}

func deepCopy(value any) map[string]any {
	fields, _ := value.(map[string]any)
	if fields == nil {
		return map[string]any{}
	}
	return Copy(fields).(map[string]any)
}

func sparkResources(job, section map[string]any) (map[string]any, error) {
	requests, limits := map[string]any{}, map[string]any{}
	cores, found, err := Integer(section, Path{"cores"})
	if err != nil {
		return nil, err
	}
	if !found {
		cores = 1
	}
	requests["cpu"] = strconv.FormatInt(cores, 10)
	if text, ok := section["coreRequest"].(string); ok && text != "" {
		requests["cpu"] = text
	}
	if text, ok := section["coreLimit"].(string); ok && text != "" {
		limits["cpu"] = text
	}
	mebibytes, err := sparkMemory(job, section)
	if err != nil {
		return nil, err
	}
	memory := strconv.FormatInt(mebibytes, 10) + "Mi"
	requests["memory"], limits["memory"] = memory, memory
	if gpu, ok := section["gpu"].(map[string]any); ok {
		name, _ := gpu["name"].(string)
		quantity, found, err := Integer(gpu, Path{"quantity"})
		if err != nil {
			return nil, err
		}
		if name != "" && found {
			limits[name] = strconv.FormatInt(quantity, 10)
		}
	}
	return map[string]any{"requests": requests, "limits": limits}, nil
}

// sparkMemory is the memory of a container in MiB, with what Spark adds to it.
func sparkMemory(job, section map[string]any) (int64, error) {
	memory, err := javaMebibytes(section, "memory", 1024)
	if err != nil {
		return 0, err
	}
	overhead, err := javaMebibytes(section, "memoryOverhead", -1)
	if err != nil || overhead >= 0 {
		return memory + max(overhead, 0), err
	}
	factor := overheadJVM
	if kind, _ := Lookup(job, PathOf(".spec.type")).(string); kind == "Python" || kind == "R" {
		factor = overheadOther
	}
	if text, ok := Lookup(job, PathOf(".spec.memoryOverheadFactor")).(string); ok && text != "" {
		if factor, err = strconv.ParseFloat(text, 64); err != nil || math.IsNaN(factor) || factor < 0 || factor > 100 {
			return 0, fmt.Errorf("memoryOverheadFactor %q is no reasonable factor", text)
		}
	}
	return memory + max(int64(factor*float64(memory)), minSparkOverhead), nil
}

var javaMemory = regexp.MustCompile(`^([0-9]{1,12})([kmgtp]?)(i?b?)$`)

// javaMebibytes reads an amount as Java has it, "512m" or "2g", in MiB; a number alone is in MiB.
func javaMebibytes(section map[string]any, key string, absent int64) (int64, error) {
	text, _ := section[key].(string)
	if text == "" {
		return absent, nil
	}
	match := javaMemory.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if match == nil {
		return 0, fmt.Errorf("%s %q is no amount of memory", key, text)
	}
	unit := map[string]string{"": "Mi", "k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti", "p": "Pi"}[match[2]]
	quantity, err := resource.ParseQuantity(match[1] + unit)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	return quantity.Value() >> 20, nil
}
