# Runs outside the cluster, for as long as it lives, and removes the one thing that namespaces do
# not take along: the cgroups of its nodes.
#
# $0 and $1: the mark of a keeper and the cluster's name. INIT: the text of init.sh.
# Standard input and output are those of init.sh.
name=$1

# Each of the three dies when the one before it does. When its child is killed unshare says so, which
# nobody wants to read; when it cannot start one, init.sh is not heard.
setpriv --pdeathsig KILL \
    unshare --net --mount --pid --ipc --uts --fork --kill-child --mount-proc \
    sh -c "$INIT" unisono-cluster "$name" 5>&2 2>/dev/null

for cgroup in /sys/fs/cgroup/*/unisono-"$name"; do
    if [ -d "$cgroup" ]; then find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null; fi
done
