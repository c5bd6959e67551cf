# Process 1 of a cluster: lays out its files and its network, says "ready", and then does nothing
# but reap. When it ends, by whatever cause, the kernel ends everything else in the cluster.
#
# $0 and $1: the mark of a cluster and its name. CACHE: the folder with binaries and images.
# ROUTER, SERVICES: the addresses of network.rs.
# Descriptor 5: where faults are told. Standard output: where "ready" is said.
# Standard input: the owner's pipe. The end of it ends the cluster, unless "stay" was said before.
set -eu
exec 3<&0 4>&1 2>&5 1>&5 5>&-

hostname "$1"
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir -p /mnt/cache /mnt/log /mnt/tmp
mount --bind "$CACHE" /mnt/cache
# The machine's files are the cluster's to read, never to change.
mount -o remount,bind,ro /

ip link set lo up
ip link add nodes type bridge
ip address add "$ROUTER/24" dev nodes
ip link set nodes up
# There is no kube-proxy: the two service addresses that pods cannot do without are simply ours.
for service in $SERVICES; do ip address add "$service/32" dev lo; done
echo 1 >/proc/sys/net/ipv4/ip_forward
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
echo 0 >/proc/sys/net/ipv4/conf/nodes/rp_filter
echo 0 >/proc/sys/net/ipv4/conf/all/send_redirects
echo 0 >/proc/sys/net/ipv4/conf/nodes/send_redirects

echo ready >&4
exec 4>&-
# A shell that waits for a job reaps every orphan meanwhile; one that reads does not.
{ read -r word && [ "$word" = stay ] && exec sleep infinity; } <&3 &
exec 3<&-
wait $!
