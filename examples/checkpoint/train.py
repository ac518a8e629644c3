#!/usr/bin/env python3
"""Trains in steps. On a notice it writes a checkpoint and acknowledges: see docs/users/grace.md."""
import json, os, ssl, time, urllib.request
from datetime import datetime, timezone

PODINFO = os.environ.get("PODINFO", "/etc/podinfo/annotations")  # a file of the downward API
ACCOUNT = os.environ.get("ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount/")
API = os.environ.get("API", "https://kubernetes.default.svc")
CHECKPOINT = os.environ.get("CHECKPOINT", "/data/checkpoint")  # on a volume that outlives the pod

def suspend_at():
    """The time at which the job will be suspended, or None."""
    notes = dict(line.rstrip("\n").split("=", 1) for line in open(PODINFO) if "=" in line)
    return notes.get("koord-queue/suspend-at")

def acknowledge():
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    patch = json.dumps({"metadata": {"annotations": {"koord-queue/checkpointed": now}}})
    pod = f"{API}/api/v1/namespaces/{open(ACCOUNT + 'namespace').read()}/pods/{os.environ['HOSTNAME']}"
    urllib.request.urlopen(urllib.request.Request(pod, patch.encode(), method="PATCH", headers={
        "Authorization": "Bearer " + open(ACCOUNT + "token").read(), "Content-Type": "application/merge-patch+json",
    }), context=ssl.create_default_context(cafile=ACCOUNT + "ca.crt"))

step, answered = int(open(CHECKPOINT).read()) if os.path.exists(CHECKPOINT) else 0, None
while True:
    step += 1
    time.sleep(0.1)  # trains
    notice = suspend_at()
    if notice and notice != answered:
        with open(CHECKPOINT + ".new", "w") as file:
            file.write(str(step))
        os.replace(CHECKPOINT + ".new", CHECKPOINT)
        acknowledge()
        answered = notice  # and trains on, until the job is suspended
