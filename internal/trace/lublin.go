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

package trace

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// The model of Lublin and Feitelson (2003) for jobs of no particular type. Times are e^x seconds, and gamma(α, β) has
// the mean αβ.
const (
	serialShare, powerShare             = 0.244, 0.576
	sizeLow, sizeKneeBelow, sizeLowPart = 0.8, 2.5, 0.86
	run1Alpha, run1Beta                 = 4.2, 0.94
	run2Alpha, run2Beta                 = 312, 0.03
	runSlope, runBase, runMost          = -0.0054, 0.78, 12
	gapAlpha, gapBeta, gapMost          = 10.2303, 0.4871, 13
	dayAlpha, dayBeta, rush             = 8.1737, 3.9631, 1.0225

	buckets      = 48 // of a day
	bucketLength = 24 * time.Hour / buckets
	firstBucket  = 10 // the least busy one
)

// The model has no limits. In public traces, 27 % of the jobs run less than a tenth of their limit. 23 % run more than
// nine tenths, and 6 % all of it. The shares below lead there: the shortest jobs have no near limit in whole seconds.
const (
	shareFarBelow, shareAtLimit, shareNear = 0.27, 0.06, 0.21
	farBelow, near                         = 0.1, 0.9
	leastPart                              = 0.01
	longestLimit                           = 7 * 24 * time.Hour
)

// popularLimits are the limits that users choose. Limits beyond are whole days.
var popularLimits = []time.Duration{
	time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
	3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 8 * time.Hour, 12 * time.Hour, 18 * time.Hour,
}

// Lublin makes a workload of so many jobs by the model. Equal seeds give equal workloads. The origin of time is a
// midnight.
func Lublin(jobs int, processors int64, seed uint64) (*Workload, error) {
	if jobs < 1 || jobs > MaxJobs {
		return nil, fmt.Errorf("%d jobs: must be between 1 and %d", jobs, MaxJobs)
	}
	if processors < 1 || processors > MaxProcessors {
		return nil, fmt.Errorf("%d processors: must be between 1 and %d", processors, MaxProcessors)
	}
	l := &lublin{Rand: rand.New(rand.NewPCG(seed, 0)), processors: processors, weights: dayWeights()}
	w := &Workload{Processors: processors, Jobs: make([]Job, jobs)}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		j.ID, j.Submit, j.Size = strconv.Itoa(i+1), l.arrival(), l.size()
		j.Run = l.run(j.Size)
		j.Limit = l.limit(j.Run)
	}
	return w, nil
}

type lublin struct {
	*rand.Rand
	processors int64
	weights    [buckets]float64

	// The last arrival: its time, the half-hour, the points that are left there, and their part of its weight.
	at           float64
	bucket       int
	points, rest float64
}

func (l *lublin) size() int64 {
	u := l.Float64()
	if u <= serialShare {
		return 1
	}
	high := math.Log2(float64(l.processors))
	low := min(sizeLow, high)
	knee := max(low, high-sizeKneeBelow)
	x := low + (knee-low)*l.Float64()
	if l.Float64() > sizeLowPart {
		x = knee + (high-knee)*l.Float64()
	}
	if u <= serialShare+powerShare {
		x = math.Round(x)
	}
	return min(int64(math.Round(math.Exp2(x))), l.processors)
}

func (l *lublin) run(size int64) time.Duration {
	p := min(max(runSlope*float64(size)+runBase, 0), 1)
	for {
		alpha, beta := run2Alpha*1.0, run2Beta
		if l.Float64() <= p {
			alpha, beta = run1Alpha, run1Beta
		}
		if x := l.gamma(alpha, beta); x <= runMost {
			return time.Duration(math.Exp(x)) * time.Second
		}
	}
}

// arrival is the time of the next submission. Each gap is spent as points, of which busy half-hours have more.
func (l *lublin) arrival() time.Duration {
	x := l.gamma(gapAlpha*rush, gapBeta)
	for x > gapMost {
		x = l.gamma(gapAlpha*rush, gapBeta)
	}
	l.points += math.Exp(x) / bucketLength.Seconds()
	for l.points > l.weights[l.bucket] {
		l.points -= l.weights[l.bucket]
		l.bucket = (l.bucket + 1) % buckets
		l.at += bucketLength.Seconds()
	}
	rest := l.points / l.weights[l.bucket]
	l.at += bucketLength.Seconds() * (rest - l.rest)
	l.rest = rest
	return time.Duration(l.at) * time.Second
}

func (l *lublin) limit(run time.Duration) time.Duration {
	between := func(low, high float64) time.Duration {
		limit := time.Duration(float64(run) / (low + (high-low)*l.Float64()))
		return time.Duration(wholeSeconds(limit)) * time.Second
	}
	switch u := l.Float64(); {
	case u < shareAtLimit:
		return run
	case u < shareAtLimit+shareNear: // such a limit was chosen for the job
		return between(near, 1)
	case u < shareAtLimit+shareNear+shareFarBelow:
		return max(run, min(popular(between(leastPart, farBelow)), longestLimit))
	default:
		limit := between(farBelow, near)
		if rounded := popular(limit); run.Seconds() >= farBelow*rounded.Seconds() {
			return rounded
		}
		return limit
	}
}

func popular(limit time.Duration) time.Duration {
	if i, _ := slices.BinarySearch(popularLimits, limit); i < len(popularLimits) {
		return popularLimits[i]
	}
	const day = 24 * time.Hour
	if over := limit % day; over > 0 {
		limit += day - over
	}
	return limit
}

// gamma draws from a gamma distribution with an alpha of at least 1 (Marsaglia and Tsang, 2000).
func (l *lublin) gamma(alpha, beta float64) float64 {
	d := alpha - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := l.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-l.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * beta
		}
	}
}

// dayWeights are the weights of the half-hours of a day from midnight on, with the mean 1.
func dayWeights() (weights [buckets]float64) {
	scale, _ := math.Lgamma(dayAlpha)
	density := func(x float64) float64 {
		x /= dayBeta
		return math.Exp((dayAlpha-1)*math.Log(x)-x-scale) / dayBeta
	}
	total := 0.0
	for i := firstBucket + 1; i <= firstBucket+buckets; i++ {
		// The integral from i-½ to i+½ by Simpson's rule; the density is smooth.
		const parts = 16
		sum, step := 0.0, 1.0/parts
		for k := range parts {
			from := float64(i) - 0.5 + float64(k)*step
			sum += (density(from) + 4*density(from+step/2) + density(from+step)) * step / 6
		}
		weights[(i-1)%buckets] = sum
		total += sum
	}
	for i := range weights {
		weights[i] *= buckets / total
	}
	return weights
}
