"""Checks kubernetes-indexed-job.yaml: what one of its fields demands of another. Which fields there are, and of
which types, kubernetes_api.py compares with the API's own schema.

    kubernetes_manifest.py FILE                 each fault on a line; exit 1 if there is one
    kubernetes_manifest.py FILE --args NAME     the args of the container NAME, one on a line
    kubernetes_manifest.py FILE --command NAME  its command, likewise
    kubernetes_manifest.py FILE --completions   the number of shards
"""
import sys

import yaml


def pod(job):
    return job["spec"]["template"]["spec"]


def containers(job):
    return pod(job).get("initContainers", []) + pod(job)["containers"]


def common_faults(job):
    where, faults = job["metadata"]["name"], []
    container = pod(job)["containers"][0]
    labels = job["spec"]["template"]["metadata"]["labels"]
    if labels != job["metadata"]["labels"]:
        faults.append("%s: other labels on the pods" % where)
    volumes = {volume["name"] for volume in pod(job)["volumes"]}
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    if volumes != mounts:
        faults.append("%s: volumes %s, mounts %s" % (where, sorted(volumes), sorted(mounts)))
    if container["command"] != ["mxfp4-repack"]:  # no shell: signals reach the program
        faults.append("%s: command %s" % (where, container["command"]))
    if pod(job)["restartPolicy"] != "Never" or pod(job)["securityContext"].get("runAsNonRoot") is not True:
        faults.append("%s: as root, or restarted in place, where no shard is counted" % where)
    if "limits" not in container["resources"]:
        faults.append("%s: no limits" % where)
    codes = [rule for rule in job["spec"]["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    if [(rule["action"], rule["onExitCodes"]["operator"], rule["onExitCodes"]["values"])
            for rule in codes] != [("FailJob", "In", [2, 3, 4])]:
        faults.append("%s: exit codes 2, 3 and 4 are retried, or others are not" % where)
    if any(rule["onExitCodes"]["containerName"] != container["name"] for rule in codes):
        faults.append("%s: podFailurePolicy names no container of the pod" % where)
    return faults


def faults(jobs):
    if len(jobs) != 2:
        return ["%d documents instead of 2" % len(jobs)]
    found = [fault for job in jobs for fault in common_faults(job)]
    shards, final = jobs
    spec, args = shards["spec"], pod(shards)["containers"][0]["args"]
    if spec.get("completionMode") != "Indexed":
        found.append("completionMode: not Indexed, so there is no JOB_COMPLETION_INDEX")
    if "completions" not in spec or not 1 <= spec.get("parallelism", 0) <= spec["completions"]:
        found.append("completions and parallelism: not 1 <= parallelism <= completions")
    if "backoffLimitPerIndex" not in spec or "backoffLimit" in spec:
        found.append("backoffLimit: not by index")
    if "--shard=$(JOB_COMPLETION_INDEX)/%s" % spec.get("completions") not in args:
        found.append("args: no --shard=$(JOB_COMPLETION_INDEX)/N with N = completions = %s" % spec.get("completions"))
    if "--resume" not in args:
        found.append("args: no --resume, so a second attempt would be refused")
    if args[0] != "convert" or not args[1].startswith("/models/"):
        found.append("args: not convert /models/...")
    last = pod(final)["containers"][0]["args"]
    if "--output=" + last[1] not in args or last[0] != "finalize":
        found.append("finalize: not the directory that the shards write")
    if not last[1].startswith("/blobs/"):
        found.append("finalize: not below the mount /blobs")
    waits = pod(final).get("initContainers", [])
    if [wait["args"] for wait in waits] != [[last[1], str(spec.get("completions"))]]:
        found.append("finalize: does not wait for the directory and the number of the shards")
    if "activeDeadlineSeconds" not in final["spec"]:
        found.append("finalize: waits for ever when a shard fails")
    if "backoffLimit" not in final["spec"] or "backoffLimitPerIndex" in final["spec"]:
        found.append("finalize: backoffLimit is not the whole job's")
    images = {container["image"] for job in jobs for container in containers(job)}
    if len(images) != 1:
        found.append("images differ: %s" % sorted(images))
    return found


def main():
    with open(sys.argv[1]) as file:
        jobs = list(yaml.safe_load_all(file))
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    if wanted in ("--args", "--command"):
        for job in jobs:
            for container in containers(job):
                if container["name"] == sys.argv[3]:
                    print("\n".join(container[wanted[2:]]))
        return 0
    if wanted == "--completions":
        print(jobs[0]["spec"]["completions"])
        return 0
    found = faults(jobs)
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
