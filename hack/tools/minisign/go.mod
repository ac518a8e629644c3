// Builds minisign, which `make release` signs checksums with. It is a module of its own so that its dependencies never
// reach the product.
module github.com/koord-jobqueue/koord-jobqueue/hack/tools/minisign

go 1.26.0

tool aead.dev/minisign/cmd/minisign

require (
	aead.dev/minisign v0.3.0 // indirect
	golang.org/x/crypto v0.48.0 // indirect
	golang.org/x/sys v0.41.0 // indirect
	golang.org/x/term v0.40.0 // indirect
)
