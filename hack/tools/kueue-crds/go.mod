// Names the release of Kueue whose CRDs tests read. Kueue itself is built by nothing here.
module github.com/koord-jobqueue/koord-jobqueue/hack/tools/kueue-crds

go 1.26.0

require sigs.k8s.io/kueue v0.19.2
