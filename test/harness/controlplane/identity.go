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
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Identity is who a client is to the API server; each has a token and a kubeconfig of its own.
type Identity string

// The identities.
const (
	// Admin may do everything (group system:masters).
	Admin Identity = "admin"
	// ControllerManagerIdentity is system:kube-controller-manager; its controllers use service accounts.
	ControllerManagerIdentity Identity = "kube-controller-manager"
	// KWOKIdentity may play nodes and pods.
	KWOKIdentity Identity = "kwok"
	// SchedulerIdentity is service account koord-scheduler in koordinator-system.
	SchedulerIdentity Identity = "koord-scheduler"
	// OperatorIdentity may do everything, like Admin. Its name distinguishes actions of an operator from those of a test.
	OperatorIdentity Identity = "operator"
	// ControllerIdentity is service account jobqueue-controller in koord-queue.
	ControllerIdentity Identity = "jobqueue-controller"
)

// SchedulerUser and ControllerUser are the names by which the API server knows the two service accounts.
const (
	SchedulerUser  = serviceAccountPrefix + "koordinator-system:koord-scheduler"
	ControllerUser = serviceAccountPrefix + "koord-queue:jobqueue-controller"

	serviceAccountPrefix = "system:serviceaccount:"
)

type account struct {
	identity Identity
	user     string
	groups   []string
}

func serviceAccount(identity Identity, user string) account {
	namespace, _, _ := strings.Cut(strings.TrimPrefix(user, serviceAccountPrefix), ":")
	return account{
		identity: identity,
		user:     user,
		// system:authenticated is added by the API server.
		groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
	}
}

func accounts() []account {
	return []account{
		{identity: Admin, user: "admin", groups: []string{"system:masters"}},
		{identity: ControllerManagerIdentity, user: "system:kube-controller-manager"},
		{identity: KWOKIdentity, user: kwokUser},
		{identity: OperatorIdentity, user: "operator", groups: []string{"system:masters"}},
		serviceAccount(SchedulerIdentity, SchedulerUser),
		serviceAccount(ControllerIdentity, ControllerUser),
	}
}

// pki is what clients need to trust the server and the server to know its clients.
type pki struct {
	dir    string
	ca     []byte // PEM
	tokens map[Identity]string
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// certificateLife is the life of the certificates of one run.
const certificateLife = 30 * 24 * time.Hour

// newPKI writes a CA, the certificate of the API server, the key that signs service account tokens and the token
// file into dir. now is the time from which the certificates are valid.
func newPKI(dir string, now time.Time) (*pki, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	p := &pki{dir: dir, tokens: map[Identity]string{}}

	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "koord-jobqueue test CA"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, &caKey.PublicKey, caKey)
	if err != nil {
		return nil, err
	}
	p.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	if err := os.WriteFile(p.path("ca.crt"), p.ca, 0o600); err != nil {
		return nil, err
	}

	if err := p.issueServer(ca, caKey); err != nil {
		return nil, err
	}
	if err := p.issueFrontProxy(now); err != nil {
		return nil, err
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if err := writeKey(p.path("service-account.key"), signer); err != nil {
		return nil, err
	}
	return p, p.writeTokens()
}

func (p *pki) issueServer(ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
	}
	der, err := x509.CreateCertificate(rand.Reader, server, ca, &key.PublicKey, caKey)
	if err != nil {
		return err
	}
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(p.path("apiserver.crt"), crt, 0o600); err != nil {
		return err
	}
	return writeKey(p.path("apiserver.key"), key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func (p *pki) writeTokens() error {
	var lines strings.Builder
	for i, a := range accounts() {
		raw := make([]byte, 16)
		if _, err := rand.Read(raw); err != nil {
			return err
		}
		token := hex.EncodeToString(raw)
		p.tokens[a.identity] = token
		fmt.Fprintf(&lines, "%s,%s,%d,%q\n", token, a.user, i, strings.Join(a.groups, ","))
	}
	return os.WriteFile(p.path("tokens.csv"), []byte(lines.String()), 0o600)
}

// writeKubeconfig writes the kubeconfig of one identity to path.
func (p *pki) writeKubeconfig(path, server string, identity Identity) error {
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["jobqueue"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: p.ca}
	cfg.AuthInfos[string(identity)] = &clientcmdapi.AuthInfo{Token: p.tokens[identity]}
	cfg.Contexts["jobqueue"] = &clientcmdapi.Context{Cluster: "jobqueue", AuthInfo: string(identity)}
	cfg.CurrentContext = "jobqueue"
	return clientcmd.WriteToFile(*cfg, path)
}

func (p *pki) restConfig(server string, identity Identity) *rest.Config {
	return &rest.Config{
		Host:            server,
		BearerToken:     p.tokens[identity],
		TLSClientConfig: rest.TLSClientConfig{CAData: p.ca},
		// A test measures the server, not its own client.
		QPS: -1,
	}
}
