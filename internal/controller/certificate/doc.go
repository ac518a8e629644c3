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

// Package certificate makes and renews the certificate of an aggregated API, so that nobody has to install another
// program for it.
//
// The certificate is its own authority, and its key can sign nothing else. It is replaced in steps: the new certificate
// is trusted together with the old one, then served, then trusted alone. The time between two steps lets every process
// learn of the first one.
package certificate
