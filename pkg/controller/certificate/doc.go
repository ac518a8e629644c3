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

// Package certificate makes the certificate that an aggregated API is served with, and makes another one in time, so
// that nobody has to and nothing else has to be installed.
//
// The certificate is its own authority, and no other: a holder of its key can sign nothing. It is replaced in steps,
// with a time between that lets each be known everywhere: the new one is trusted together with the old one, then
// served, then alone.
package certificate
