# Starts one node inside a cluster, in two acts of the same text.
#
# enter: joins the node's cgroup and becomes a process in namespaces of its own.
# boot:  process 1 of the node: its network, its mounts, then containerd and the kubelet. When
#        either ends, the node ends.
#
# $0: the mark of a node; $1: the act; $2: cluster/node. NODE, ADDRESS, PODS, ROUTER: its name and
# the addresses of network.rs. KUBELET: its program. STORE: the images to have from the start. SELF: this text.
set -eu

enter() {
    # A process sees its own cgroup as the root only if it was in it when it left the old view.
    for group in /sys/fs/cgroup/*/"unisono-$1"; do echo 0 >"$group/cgroup.procs"; done
    exec unshare --net --mount --pid --ipc --uts --cgroup --fork --kill-child \
        sh -c "$SELF" unisono-cluster-node boot "$1"
}

# Runs a command in the cluster's network. Only before the node has a /proc of its own.
outside() {
    nsenter --net=/proc/1/ns/net "$@"
}

network() {
    # The link of a node that was stopped goes a moment after its processes.
    outside ip link delete "$NODE" 2>/dev/null || true
    ip link add eth0 type veth peer name "$NODE" netns /proc/1/ns/net
    outside ip link set "$NODE" master nodes up
    outside ip route replace "$PODS" via "$ADDRESS"
    ip link set lo up
    ip address add "$ADDRESS/24" dev eth0
    ip link set eth0 up
    ip route add default via "$ROUTER"
}

# Mounts the node's part of every cgroup hierarchy where the whole of it is on the machine.
cgroups() {
    mount -t sysfs sysfs /sys
    mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
    while IFS=: read -r _ controllers _; do
        case $controllers in
            '') continue ;;
            name=*) options=none,$controllers ;;
            *) options=$controllers ;;
        esac
        mkdir "/sys/fs/cgroup/${controllers#name=}"
        mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/${controllers#name=}"
    done </proc/self/cgroup
}

# The node's disk is /mnt/$NODE and outlives it; everything else it writes is memory of its own.
disk() {
    mkdir -p "/mnt/$NODE/lib" "/mnt/$NODE/log"
    mount --bind "/mnt/$NODE/log" /var/log
    mount --bind "/mnt/$NODE/lib" /var/lib
    mount -t tmpfs -o mode=755 tmpfs /run
    mount -t tmpfs tmpfs /tmp
}

# Images are unpacked once, in the cache: a node has them by mounting, not by copying.
images() {
    root=/var/lib/containerd
    snapshots=io.containerd.snapshotter.v1.overlayfs
    content=io.containerd.content.v1.content
    bolt=io.containerd.metadata.v1.bolt
    if [ ! -d "$root" ]; then
        mkdir -p "$root/$snapshots/snapshots" "$root/$content" "$root/$bolt" "/mnt/$NODE/content" "/mnt/$NODE/work"
        cp "$STORE/$bolt/meta.db" "$root/$bolt/"
        cp "$STORE/$snapshots/metadata.db" "$root/$snapshots/"
    fi
    mount -t overlay -o "lowerdir=$STORE/$content,upperdir=/mnt/$NODE/content,workdir=/mnt/$NODE/work" \
        overlay "$root/$content"
    for snapshot in "$STORE/$snapshots/snapshots"/*; do
        mine="$root/$snapshots/snapshots/${snapshot##*/}"
        mkdir -p "$mine/fs" "$mine/work"
        mount --bind -o ro "$snapshot/fs" "$mine/fs"
    done
}

# Runs one of the node's two programs; the node does not go on without it.
keep() {
    program=$1
    log="/mnt/log/$NODE.$program.log"
    shift
    { "$@" >>"$log" 2>&1 && code=0 || code=$?
      echo "$program ended with code $code" >>"$log"
      kill -TERM 1; } &
}

boot() {
    trap 'exit 1' TERM
    hostname "$NODE"
    network
    mount -t proc proc /proc
    cgroups
    disk
    images
    mount --make-rshared /
    echo 1 >/proc/sys/net/ipv4/ip_forward
    keep containerd containerd --config "/mnt/$NODE/containerd.toml"
    until [ -S /run/containerd/containerd.sock ]; do sleep 0.05; done
    keep kubelet "$KUBELET" --config "/mnt/$NODE/kubelet.yaml" \
        --kubeconfig "/mnt/$NODE/kubeconfig" --hostname-override "$NODE" --node-ip "$ADDRESS"
    wait
}

"$@"
