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

package jobkind

import "github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"

// Rules about pod sets are read by programs that submit jobs as well, so they live in a module of their own.
type (
	Path        = podset.Path
	Place       = podset.Place
	Set         = podset.Set
	Add         = podset.Add
	Term        = podset.Term
	Source      = podset.Source
	Partial     = podset.Partial
	Condition   = podset.Condition
	MetadataKey = podset.MetadataKey
	Paths       = podset.Paths
	PodSetRule  = podset.PodSetRule
	CountRule   = podset.CountRule
	PartialRule = podset.PartialRule
	AddRule     = podset.AddRule
	GangRule    = podset.GangRule
	SuspendRule = podset.SuspendRule
	ValidRule   = podset.ValidRule
)

// Constants and functions of the rules about pod sets.
const (
	Star           = podset.Star
	ChildKey       = podset.ChildKey
	LabelsKey      = podset.LabelsKey
	AnnotationsKey = podset.AnnotationsKey
)

var (
	PathOf    = podset.PathOf
	Walk      = podset.Walk
	Lookup    = podset.Lookup
	Integer   = podset.Integer
	StringMap = podset.StringMap
	FirstOf   = podset.FirstOf
)
