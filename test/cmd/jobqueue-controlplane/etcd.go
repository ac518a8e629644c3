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

package main

import (
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
)

// backendQuota is the size in bytes that the store may reach: above etcd's default because a long playground
// session collects events.
const backendQuota = 4 << 30

// runEtcd serves one etcd member until it gets a signal. It does not sync its files. So the store of a test cluster
// survives the end of a process, even kill -9, but not the end of the machine.
func runEtcd(args []string) error {
	flags := flag.NewFlagSet("etcd", flag.ContinueOnError)
	dir := flags.String("data-dir", "", "directory of the store")
	client := flags.String("client-url", "", "URL to serve clients on")
	peer := flags.String("peer-url", "", "URL of the (only) peer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" || *client == "" || *peer == "" {
		return errors.New("--data-dir, --client-url and --peer-url are required")
	}
	clientURL, err := url.Parse(*client)
	if err != nil {
		return fmt.Errorf("--client-url: %w", err)
	}
	peerURL, err := url.Parse(*peer)
	if err != nil {
		return fmt.Errorf("--peer-url: %w", err)
	}

	cfg := embed.NewConfig()
	cfg.Dir = *dir
	cfg.LogLevel = "warn"
	cfg.UnsafeNoFsync = true
	cfg.QuotaBackendBytes = backendQuota
	cfg.AutoCompactionMode = embed.CompactorModePeriodic
	cfg.AutoCompactionRetention = "5m"
	cfg.ListenClientUrls = []url.URL{*clientURL}
	cfg.AdvertiseClientUrls = []url.URL{*clientURL}
	cfg.ListenPeerUrls = []url.URL{*peerURL}
	cfg.AdvertisePeerUrls = []url.URL{*peerURL}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)

	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	server, err := embed.StartEtcd(cfg)
	if err != nil {
		return err
	}
	defer server.Close()
	select {
	case <-stop:
		return nil
	case err := <-server.Err():
		return err
	}
}
