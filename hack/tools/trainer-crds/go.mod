// Names the releases of Kubeflow's trainer whose CRDs tests read. hack/tools/trainer builds the one that runs in them.
module github.com/koord-jobqueue/koord-jobqueue/hack/tools/trainer-crds

go 1.26.0

require github.com/kubeflow/trainer/v2 v2.3.0
