"""Judges many cases, each by itself, in several processes. Each has a folder of its own below the working directory,
starts the calling script again there, and reads its cases from stdin: a case is a name with colons."""
import os
import random
import subprocess
import sys

ENDS = "judged"  # the last line of a process, and behind it how many cases it judged, and how many badly
MISSED = "missed"  # what judge_one returns where the fault did not come to pass


def number():
    """Of processes: MXFP4_JOBS, one if it is not set."""
    return int(os.environ.get("MXFP4_JOBS", "1"))


def judge(cases, judge_one, variable):
    """Prints what is wrong with each case, as a replay by this variable. How many came to pass, and how many badly."""
    bad = missed = 0
    for case in cases:
        wrong = judge_one(case)
        missed += wrong == MISSED
        if wrong and wrong != MISSED:
            bad += 1
            print(f"{variable}={case}: {wrong}", flush=True)
    return len(cases) - missed, bad


def judge_all(cases, judge_one, variable):
    """As judge(), in number() processes. A process that dies makes this fail."""
    jobs = min(number(), len(cases))
    if jobs < 2:
        return judge(cases, judge_one, variable)
    processes = []
    for job in range(jobs):
        folder = os.path.abspath(f"job-{job:04}")
        os.mkdir(folder)
        with open(f"{folder}/cases", "w") as file:
            file.write("\n".join(cases[job::jobs]))
        with open(f"{folder}/cases") as given, open(f"{folder}/words", "w") as words:
            processes.append((folder, subprocess.Popen([sys.executable, os.path.abspath(sys.argv[0])], cwd=folder,
                                                       stdin=given, stdout=words, stderr=subprocess.STDOUT,
                                                       env={**os.environ, variable: "-"})))
    judged = bad = 0
    for folder, process in processes:
        code = process.wait()
        with open(f"{folder}/words") as file:
            *words, last = file.read().splitlines() or [""]
        for line in words:
            print(line, flush=True)
        assert code == 0 and last.startswith(ENDS), f"{folder}: exit {code}: {last}"
        judged += int(last.split()[1])
        bad += int(last.split()[2])
    return judged, bad


def sample(cases, count, drawn):
    """`count` of the cases, or all if there are fewer."""
    return drawn.sample(cases, min(count, len(cases)))


def main(variable, usual, prepare, all_cases, judge_one, draw=sample):
    """The whole of a script; True: something is wrong. `variable` says which cases: a number of them, drawn by MXFP4_SEED
    (1), `usual` if it is not set; "all"; or one by its name. judge_one: what is wrong with a case, None, or MISSED."""
    wanted = os.environ.get(variable, str(usual))
    prepare()
    if wanted == "-":  # a process that judge_all() started
        print(ENDS, *judge(sys.stdin.read().split(), judge_one, variable), flush=True)
        return False
    cases = [wanted]
    if ":" not in wanted:
        seed, cases = int(os.environ.get("MXFP4_SEED", "1")), all_cases()
        total = len(cases)
        if wanted != "all":
            cases = draw(cases, int(wanted), random.Random(seed))
        print(f"{len(cases)} of {total} cases, seed {seed}", flush=True)
    judged, bad = judge_all(cases, judge_one, variable)
    print(f"{judged} cases, {bad} of them badly")
    return bad > 0 or judged == 0
