module codehub/cluster/kwok

go 1.25.0

require sigs.k8s.io/kwok v0.7.0
