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

package listing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// cluster answers as an API server does, and keeps what was asked. Lists are in pages of two.
type cluster struct {
	asked []string
	// aggregated: the API of the scheduler is there. everywhere: QueueUnits of all namespaces may be listed.
	aggregated, everywhere bool
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	write := func(object any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
	}
	const live, objects = "/apis/visibility.koord-queue.x-k8s.io/v1alpha1", "/apis/scheduling.x-k8s.io/v1alpha1"
	query := r.URL.Query()
	c.asked = append(c.asked, strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, live), objects)+"?"+r.URL.RawQuery)
	namespaces := []string{"blue", "red"}
	if _, after, one := strings.Cut(r.URL.Path, "/namespaces/"); one {
		name, _, _ := strings.Cut(after, "/")
		namespaces = []string{name}
	}
	isLive := strings.HasPrefix(r.URL.Path, live)
	switch {
	case isLive && !c.aggregated:
		w.WriteHeader(http.StatusNotFound)
		write(&metav1.Status{Status: "Failure", Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
		return
	case !isLive && len(namespaces) > 1 && !c.everywhere:
		w.WriteHeader(http.StatusForbidden)
		write(&metav1.Status{Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
			Message: "may not list"})
		return
	}
	units, queueUnits, resume := page(namespaces, query.Get("continue"))
	if isLive {
		list := &visibility.UnitList{Items: units}
		list.SetGroupVersionKind(visibility.SchemeGroupVersion.WithKind("UnitList"))
		list.Continue = resume
		write(list)
		return
	}
	list := &v1alpha1.QueueUnitList{Items: queueUnits}
	list.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("QueueUnitList"))
	list.Continue = resume
	write(list)
}

// page has two of the units; each namespace has three.
func page(namespaces []string, token string) (live []visibility.Unit, objects []v1alpha1.QueueUnit, resume string) {
	skip := 0
	_, _ = fmt.Sscanf(token, "skip/%d", &skip)
	for i := skip; i < min(skip+2, 3*len(namespaces)); i++ {
		meta := metav1.ObjectMeta{Namespace: namespaces[i/3], Name: fmt.Sprint("u", i%3)}
		live = append(live, visibility.Unit{ObjectMeta: meta, Status: visibility.UnitStatus{
			State: "Pending", Queue: "shared", Position: int32(6 - i), Reason: "QuotaExceeded",
		}})
		objects = append(objects, v1alpha1.QueueUnit{ObjectMeta: meta, Spec: v1alpha1.QueueUnitSpec{Queue: "shared"}})
	}
	if skip+2 < 3*len(namespaces) {
		resume = fmt.Sprintf("skip/%d", skip+2)
	}
	return live, objects, resume
}

func (c *cluster) list(t *testing.T, args ...string) (string, error) {
	t.Helper()
	s := httptest.NewServer(c)
	defer s.Close()
	config := genericclioptions.NewConfigFlags(false)
	config.APIServer = &s.URL
	none := "/dev/null"
	config.KubeConfig = &none
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{Out: &out, ErrOut: &out}
	command := Jobs(config, streams, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	config.AddFlags(command.Flags())
	command.SilenceUsage = true
	command.SetArgs(args)
	command.SetOut(&out)
	command.SetErr(&out)
	c.asked = nil
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

const notOver = "state%21%3DSucceeded%2Cstate%21%3DFailed"

// Each page of a list is one request of the aggregated API, whatever it selects.
func TestEachPageIsOneRequest(t *testing.T) {
	c := &cluster{aggregated: true}
	out, err := c.list(t, "-A", "--chunk-size=2")
	require.NoError(t, err, out)
	require.Equal(t, []string{
		"/visibleunits?fieldSelector=" + notOver + "&limit=2",
		"/visibleunits?continue=skip%2F2&fieldSelector=" + notOver + "&limit=2",
		"/visibleunits?continue=skip%2F4&fieldSelector=" + notOver + "&limit=2",
	}, c.asked)
	require.Equal(t, 7, strings.Count(out, "\n"))
	require.Equal(t, 1, strings.Count(out, "NAMESPACE"))

	for args, want := range map[string]string{
		"-n red": "/namespaces/red/units?fieldSelector=" + notOver + "&limit=500",
		"-n red --queue shared -l team=a": "/namespaces/red/units?fieldSelector=queue%3Dshared%2C" + notOver +
			"&labelSelector=team%3Da&limit=500",
		"--queue shared --finished": "/visibleunits?fieldSelector=queue%3Dshared&limit=500",
		"-n red --state running,PENDING": "/namespaces/red/units?fieldSelector=state%21%3DBackoff%2C" +
			"state%21%3DDeactivated%2Cstate%21%3DReserved%2Cstate%21%3DAdmitted%2C" + notOver + "&limit=500",
	} {
		_, err := c.list(t, strings.Fields(args)...)
		require.NoError(t, err)
		require.Equal(t, want, c.asked[0], args)
	}
	out, err = c.list(t, "--queue", "shared")
	require.NoError(t, err)
	require.Less(t, strings.Index(out, "queueunit/u2   shared   1 "), strings.Index(out, "queueunit/u0   shared   6 "),
		"a queue is in its order:\n%s", out)
	_, err = c.list(t, "--state", "waiting")
	require.ErrorContains(t, err, `"waiting" is none of pending, backoff`)
}

// Without the aggregated API a list comes from the objects.
func TestAListWithoutTheAggregatedAPI(t *testing.T) {
	c := &cluster{everywhere: true}
	out, err := c.list(t, "-A", "--chunk-size=4")
	require.NoError(t, err, out)
	require.Equal(t, 7, strings.Count(out, "\n"), out)
	c.everywhere = false
	_, err = c.list(t, "-A")
	require.ErrorContains(t, err, "may not list")
	out, err = c.list(t, "-n", "red", "--state", "running")
	require.NoError(t, err)
	require.Equal(t, "No jobs are in a queue.\n", out)
}

// A lead gets the objects of the namespaces that it sees.
func TestObjectsOfALead(t *testing.T) {
	c := &cluster{aggregated: true}
	out, err := c.list(t, "-A", "-o", "name")
	require.NoError(t, err, out)
	require.Equal(t, 6, strings.Count(out, "queueunit.scheduling.x-k8s.io/u"))
	require.Contains(t, c.asked, "/namespaces/red/queueunits?limit=500")
	require.Contains(t, c.asked, "/namespaces/blue/queueunits?limit=500")
}
