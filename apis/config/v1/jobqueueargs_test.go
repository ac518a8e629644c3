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

package v1

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config"
)

func codecs(t *testing.T) serializer.CodecFactory {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, config.AddToScheme(scheme))
	require.NoError(t, AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict)
}

func decode(t *testing.T, body string) (*config.JobQueueArgs, error) {
	t.Helper()
	head := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: JobQueueArgs\n"
	obj, _, err := codecs(t).UniversalDecoder().Decode([]byte(head+body), nil, nil)
	if err != nil {
		return nil, err
	}
	return obj.(*config.JobQueueArgs), nil
}

func TestDefaultsAreCompleteAndValid(t *testing.T) {
	args, err := decode(t, "")
	require.NoError(t, err)
	require.Empty(t, args.Validate(field.NewPath("args")))
	seconds := func(n time.Duration) metav1.Duration { return metav1.Duration{Duration: n * time.Second} }
	require.Equal(t, &config.JobQueueArgs{
		QueueNamespace:         "koord-queue",
		DefaultQueuePolicy:     "Priority",
		ClientQPS:              1000,
		ClientBurst:            2000,
		WriteConcurrency:       32,
		StatusRefreshInterval:  seconds(5),
		ItemsInStatus:          100,
		ExplainAfter:           seconds(5),
		ExplainEvery:           seconds(10),
		ReasonsPerSecond:       20,
		ResyncInterval:         seconds(30),
		AuditInterval:          seconds(300),
		UnknownJobs:            config.UnknownJobsGate,
		UnknownJobsGracePeriod: seconds(30),
		ProtectReservedQuota:   true,
		UnboundTimeout:         seconds(1800),
		CheckTimeout:           seconds(1800),
		ProvisioningTimeout:    seconds(6 * 3600),
		IdleReservationTimeout: seconds(600),
		ClaimAfter:             seconds(300),
		ManagedJobsConfigMap:   config.ObjectName{Namespace: "koord-queue", Name: "koord-jobqueue-managed-jobs"},
		Visibility: config.Visibility{
			BindAddress: "0.0.0.0", Port: 10261, CertDir: "/visibility-certificate",
		},
		History: config.History{Records: 100_000, MaxSizeMB: 100, MaxFiles: 5},
	}, args)
}

func TestWhatIsWrittenIsKept(t *testing.T) {
	args, err := decode(t, "protectReservedQuota: false\nallowBuiltinQuotas: true\nitemsInStatus: 1\nunknownJobs: Pass\n"+
		"managedJobsConfigMap: {name: mine}\nexplainAfter: 1ms\nauditInterval: 0s\nunboundTimeout: 0s\nclaimAfter: 0s\n"+
		"claimTimeout: 1h\n"+
		"podsReadyTimeout: 5m\nvisibility: {port: 10262, certDir: /certs}\n"+
		"featureGates: {A: false, B: true}\nhistory: {records: 0, path: /history/units.jsonl, maxFiles: 2}\n")
	require.NoError(t, err)
	require.False(t, args.ProtectReservedQuota)
	require.True(t, args.AllowBuiltinQuotas)
	require.EqualValues(t, 1, args.ItemsInStatus)
	require.Equal(t, config.UnknownJobsPass, args.UnknownJobs)
	require.Equal(t, config.ObjectName{Namespace: "koord-queue", Name: "mine"}, args.ManagedJobsConfigMap)
	require.Equal(t, time.Millisecond, args.ExplainAfter.Duration)
	require.Zero(t, args.AuditInterval.Duration)
	require.Zero(t, args.UnboundTimeout.Duration)
	require.Zero(t, args.ClaimAfter.Duration)
	require.Equal(t, time.Hour, args.ClaimTimeout.Duration)
	require.Equal(t, 5*time.Minute, args.PodsReadyTimeout.Duration)
	require.Zero(t, args.RecoveryTimeout.Duration)
	require.Equal(t, config.Visibility{BindAddress: "0.0.0.0", Port: 10262, CertDir: "/certs"}, args.Visibility)
	require.Equal(t, config.History{Path: "/history/units.jsonl", MaxSizeMB: 100, MaxFiles: 2}, args.History)
	require.Equal(t, map[string]bool{"A": false, "B": true}, args.FeatureGates)
	require.Empty(t, args.Validate(nil))
}

func TestAnUnknownFieldIsAnErrorThatNamesIt(t *testing.T) {
	_, err := decode(t, "queueNamspace: typo\n")
	require.ErrorContains(t, err, "queueNamspace")
}

func TestValidationNamesTheField(t *testing.T) {
	for _, line := range []string{
		"queueNamespace: Upper_Case",
		"defaultQueuePolicy: at random",
		"unknownJobs: Maybe",
		"clientQPS: 0",
		"clientBurst: 0",
		"writeConcurrency: 1001",
		"itemsInStatus: 0",
		"statusRefreshInterval: 10ms",
		"explainAfter: 0s",
		"explainEvery: 0s",
		"reasonsPerSecond: 0",
		"reasonsPerSecond: 1001",
		"resyncInterval: 0s",
		"auditInterval: 1s",
		"unknownJobsGracePeriod: -1s",
		"managedJobsConfigMap: {name: 'a b'}",
		"visibility: {port: 65536}",
		"visibility: {port: -1}",
		"visibility: {bindAddress: localhost}",
		"visibility: {certDir: certs}",
		"history: {records: -1}",
		"history: {records: 1000001}",
		"history: {path: units.jsonl}",
		"history: {maxSizeMB: 0}",
		"history: {maxFiles: 1}",
	} {
		t.Run(line, func(t *testing.T) {
			args, err := decode(t, line+"\n")
			require.NoError(t, err)
			errs := args.Validate(field.NewPath("args"))
			require.Len(t, errs, 1)
			require.Contains(t, errs[0].Field, "args."+strings.SplitN(line, ":", 2)[0])
		})
	}
}

func TestInternalAndVersionedFormRoundTrip(t *testing.T) {
	want, err := decode(t, "clientQPS: 7\nwriteConcurrency: 3\nfeatureGates: {A: false}\n")
	require.NoError(t, err)
	info, ok := runtime.SerializerInfoForMediaType(codecs(t).SupportedMediaTypes(), runtime.ContentTypeYAML)
	require.True(t, ok)
	raw, err := runtime.Encode(codecs(t).EncoderForVersion(info.Serializer, SchemeGroupVersion), want)
	require.NoError(t, err)
	got, _, err := codecs(t).UniversalDecoder().Decode(raw, nil, nil)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
