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
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The kernel gives outgoing connections ports from 32768 on (by default). A listener below that cannot lose its port to
// one while its process restarts.
const (
	firstPort = 20000
	lastPort  = 32000
)

// ports hands out free loopback ports, each once per process.
type ports struct {
	mu   sync.Mutex
	used map[int]bool
}

var allPorts = ports{used: map[int]bool{}}

// next returns a port that nobody listens on.
func (p *ports) next() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	const tries = 1000
	for range tries {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if p.used[port] {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, err
		}
		p.used[port] = true
		return port, nil
	}
	return 0, fmt.Errorf("no free port between %d and %d after %d tries", firstPort, lastPort, tries)
}

const loopback = "127.0.0.1"

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
