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

package checker

import "fmt"

// Rule names a promise.
type Rule string

// The rules.
const (
	// QuotaPassed: pods bound and not ended ask for more than max of a level.
	QuotaPassed Rule = "QuotaPassed"
	// QuotaPromised: those pods together with what admitted units have not bound yet do.
	QuotaPromised Rule = "QuotaPromised"
	// Overtaken: in a blocking queue a unit was admitted while one before it, of the same quota, waited.
	Overtaken Rule = "Overtaken"
	// NotAdmitted: a pod was bound while the unit of its job held no admission.
	NotAdmitted Rule = "NotAdmitted"
	// RanTwice: more pods of a job were bound than it needs, or its unit was admitted more than once.
	RanTwice Rule = "RanTwice"
	// Lost: a job did not reach its end.
	Lost Rule = "Lost"
	// IllegalPhase: a unit changed its phase in a way that neither process may write.
	IllegalPhase Rule = "IllegalPhase"
	// DequeuedTwice: a unit was released more than once in one attempt.
	DequeuedTwice Rule = "DequeuedTwice"
	// Attempts: the number of admissions of a unit fell, or changed while it held quota.
	Attempts Rule = "Attempts"
	// AdmissionLost: a unit lost its admission before its job came to its end.
	AdmissionLost Rule = "AdmissionLost"
	// UnitLost: the unit of a job was deleted, and with it its place and what it held.
	UnitLost Rule = "UnitLost"
	// SecondUnit: a job got another unit than its first.
	SecondUnit Rule = "SecondUnit"
	// ResumedUnadmitted: a job was resumed while its unit held nothing.
	ResumedUnadmitted Rule = "ResumedUnadmitted"
	// SuspendedAdmitted: a job was suspended while its unit held quota.
	SuspendedAdmitted Rule = "SuspendedAdmitted"
	// LeftBehind: something is still there, waits or is held when all is over.
	LeftBehind Rule = "LeftBehind"
	// Restless: something was written after all was over.
	Restless Rule = "Restless"
	// HeldBeyondMax: units hold more of a quota than its max.
	HeldBeyondMax Rule = "HeldBeyondMax"
	// ForeignCharge: something outside of the namespace of a quota is charged to it.
	ForeignCharge Rule = "ForeignCharge"
	// WrittenTwice: a pod was bound, or a job released or resumed, more than once.
	WrittenTwice Rule = "WrittenTwice"
	// ForeignWrite: a user wrote what only another may write.
	ForeignWrite Rule = "ForeignWrite"
)

// edges remember what is so, to tell it once.
type edges map[string]bool

// begins says whether something is so and was not before.
func (e edges) begins(key string, so bool) bool {
	was := e[key]
	if e[key] = so; !so {
		delete(e, key)
	}
	return so && !was
}

// Violation is a broken promise.
type Violation struct {
	Rule    Rule
	Subject string
	Message string
}

func (v Violation) String() string { return fmt.Sprintf("%s %s: %s", v.Rule, v.Subject, v.Message) }
