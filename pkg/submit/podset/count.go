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
	"math"
	"strconv"
)

// ComputedCount makes a number of pods where one field does not have it.
type ComputedCount struct {
	// Number gets the job, and does not change it.
	Number func(job map[string]any) (int64, error)
	// Reads are the fields that it looks at.
	Reads []Source
}

// ComputedCounts by the names that descriptors have for them.
var ComputedCounts = map[string]ComputedCount{
	"sparkInstances":        {Number: sparkInstances, Reads: sparkCountReads},
	"sparkInitialExecutors": {Number: sparkInitialExecutors, Reads: sparkCountReads},
	"sparkMinExecutors":     {Number: sparkMinExecutors, Reads: sparkCountReads},
}

var sparkCountReads = []Source{
	{Path: PathOf(".spec.executor.instances"), OfJob: true}, {Path: PathOf(".spec.dynamicAllocation"), OfJob: true},
	{Path: PathOf(".spec.sparkConf"), OfJob: true},
}

// sparkInstances is the number of executors without dynamic allocation. The operator's default is one.
func sparkInstances(job map[string]any) (int64, error) {
	n, found, err := sparkSetting(job, PathOf(".spec.executor.instances"), "spark.executor.instances")
	if err == nil && !found {
		n = 1
	}
	return n, err
}

// sparkInitialExecutors is the number of executors that Spark starts with dynamic allocation. The source of the rule is
// getDynamicAllocationInitialExecutors of Spark 3.5. Where that is none, the first task has Spark ask for one.
func sparkInitialExecutors(job map[string]any) (int64, error) {
	least, err := sparkMinExecutors(job)
	if err != nil {
		return 0, err
	}
	initial, err := sparkDynamic(job, "initialExecutors")
	if err != nil {
		return 0, err
	}
	instances, _, err := sparkSetting(job, PathOf(".spec.executor.instances"), "spark.executor.instances")
	return max(least, initial, instances, 1), err
}

func sparkMinExecutors(job map[string]any) (int64, error) { return sparkDynamic(job, "minExecutors") }

// sparkDynamic is a number of dynamic allocation. The operator leaves the fields out unless they are switched on.
func sparkDynamic(job map[string]any, name string) (int64, error) {
	var field Path
	if enabled, _ := Lookup(job, PathOf(".spec.dynamicAllocation.enabled")).(bool); enabled {
		field = Path{"spec", "dynamicAllocation", name}
	}
	n, _, err := sparkSetting(job, field, "spark.dynamicAllocation."+name)
	return n, err
}

// sparkSetting reads a field of the application. If that is absent, it reads the configuration of Spark. The operator
// passes both to spark-submit.
func sparkSetting(job map[string]any, field Path, key string) (n int64, found bool, err error) {
	if n, found, err = Integer(job, field); found || err != nil {
		if n < 0 {
			err = fmt.Errorf("%w: %s is negative", ErrMalformed, field)
		}
		return n, found, err
	}
	conf, _ := Lookup(job, PathOf(".spec.sparkConf")).(map[string]any)
	text, found := conf[key].(string)
	if !found {
		return 0, false, nil
	}
	n, err = strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, false, fmt.Errorf("%w: %s of .spec.sparkConf is %.20q, want a number", ErrMalformed, key, text)
	}
	return n, true, nil
}
