#!/usr/bin/env python3
"""Stands in for horovodrun: does to the hosts of a job what the real one does, and no more.

It reads the hosts of -H or --hostfile, asks every one by ssh whether it answers, starts a task on each by ssh that calls back
over TCP to tell its interfaces, and then starts the ranks: with mpirun, or (--gloo) with one ssh for each rank.
"""
import argparse
import json
import os
import shlex
import socket
import subprocess
import sys
import threading

SSH = ["ssh", "-o", "PasswordAuthentication=no", "-o", "StrictHostKeyChecking=no"]

TASK = """
import fcntl, json, socket, struct, sys
address, port, index = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
caller = socket.create_connection((address, port))

def has_address(name):
    try:
        SIOCGIFADDR = 0x8915
        fcntl.ioctl(caller, SIOCGIFADDR, struct.pack("256s", name.encode()))
        return True
    except OSError:
        return False

interfaces = [name for _, name in socket.if_nameindex() if has_address(name)]
caller.sendall(json.dumps([index, interfaces]).encode() + b"\\n")
caller.recv(1)
"""


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("-np", type=int, required=True)
    parser.add_argument("-H", dest="hosts")
    parser.add_argument("--hostfile")
    parser.add_argument("--gloo", action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args()


def hosts(call):
    if call.hosts:
        pairs = [host.split(":") for host in call.hosts.split(",")]
    else:
        lines = [line.split() for line in open(call.hostfile) if line.strip()]
        pairs = [(line[0], line[1].removeprefix("slots=")) for line in lines]
    return [(name, int(slots)) for name, slots in pairs]


def check(names):
    """Every host must answer, all of them at once."""
    calls = [subprocess.Popen([*SSH, name, "date"], stdout=subprocess.DEVNULL) for name in names]
    silent = [name for name, call in zip(names, calls) if call.wait() != 0]
    if silent:
        sys.exit(f"horovodrun: no answer by ssh from {', '.join(silent)}")


def common_interfaces(names):
    """A task on each host calls back and tells its interfaces; those that all have are used."""
    driver = socket.create_server(("0.0.0.0", 0))
    driver.settimeout(20)
    own = socket.gethostbyname(socket.gethostname())
    place = [own, str(driver.getsockname()[1])]
    tasks = []
    for index, name in enumerate(names):
        remote = shlex.join([sys.executable, "-c", TASK, *place, str(index)])
        tasks.append(subprocess.Popen([*SSH, name, remote]))
    told = {}
    connections = []
    while len(told) < len(names):
        connection, _ = driver.accept()
        index, interfaces = json.loads(connection.makefile().readline())
        told[index] = set(interfaces)
        connections.append(connection)
    for connection in connections:
        connection.sendall(b"x")
    if any(task.wait() != 0 for task in tasks):
        sys.exit("horovodrun: a task failed")
    return sorted(set.intersection(*told.values()) - {"lo"})


def with_mpirun(call, placed, interfaces):
    nics = ",".join(interfaces)
    listed = ",".join(f"{name}:{slots}" for name, slots in placed)
    exported = " ".join(f"-x {name}" for name in sorted(os.environ) if name.isidentifier())
    line = (
        f"mpirun --allow-run-as-root --tag-output -np {call.np} -H {listed} -bind-to none -map-by slot "
        f"-mca pml ob1 -mca btl ^openib -mca btl_tcp_if_include {nics} -x NCCL_SOCKET_IFNAME={nics} "
        f"{exported} {shlex.join(call.command)}"
    )
    os.execve("/bin/sh", ["/bin/sh", "-c", line], os.environ)


def with_ssh(call, placed):
    """One ssh for each rank, which carries its whole environment in its command."""
    ranks = [(name, local, slots) for name, slots in placed for local in range(slots)][: call.np]
    codes = [None] * len(ranks)

    def run(rank, name, local, slots):
        own = {"RANK": rank, "SIZE": call.np, "LOCAL_RANK": local, "LOCAL_SIZE": slots, "CONTROLLER": "gloo"}
        given = " ".join(f"HOROVOD_{key}={value}" for key, value in own.items())
        remote = f"cd {shlex.quote(os.getcwd())} >/dev/null 2>&1; {given} {shlex.join(call.command)}"
        codes[rank] = subprocess.call([*SSH, name, remote])

    threads = [threading.Thread(target=run, args=(rank, *place)) for rank, place in enumerate(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.exit(max(codes))


call = arguments()
placed = hosts(call)
names = [name for name, _ in placed]
check(names)
interfaces = common_interfaces(names)
if call.gloo:
    with_ssh(call, placed)
with_mpirun(call, placed, interfaces)
