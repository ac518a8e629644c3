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

package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"time"
)

const (
	// life of a certificate, and how much of it is left when the next one is made.
	life  = 90 * 24 * time.Hour
	spare = life / 3
	// skew of clocks that a new certificate allows for.
	skew = time.Hour
)

// pair is a certificate and its key, in PEM, and from when to when it is good.
type pair struct {
	certificate, key []byte
	made, expires    time.Time
}

func (p *pair) there() bool { return p.certificate != nil }

// newPair makes a certificate for a server of this name.
func newPair(host string, now time.Time) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: now.Add(-skew).Truncate(time.Second), NotAfter: now.Add(life).Truncate(time.Second),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return pair{}, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return readPair(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), host)
}

// readPair reads a certificate for a server of this name. Nothing is an empty pair.
func readPair(certificate, key []byte, host string) (pair, error) {
	if len(certificate) == 0 && len(key) == 0 {
		return pair{}, nil
	}
	both, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return pair{}, err
	}
	if both.Leaf == nil {
		return pair{}, errors.New("no certificate")
	}
	if err := both.Leaf.VerifyHostname(host); err != nil {
		return pair{}, err
	}
	return pair{
		certificate: certificate, key: key, made: both.Leaf.NotBefore.Add(skew), expires: both.Leaf.NotAfter,
	}, nil
}
