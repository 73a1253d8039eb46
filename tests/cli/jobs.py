"""Judges many cases, each by itself, in several processes. Each has a folder of its own below the working directory,
starts the calling script again there, and reads its cases from stdin: a case is a name with colons. It gets the next
one when it has answered, with a line of JSON.

    MXFP4_JOBS=16      so many processes (1)
    MXFP4_SECONDS=200  no case begins later; the last line says how many did not
"""
import collections
import json
import os
import queue
import random
import subprocess
import sys
import threading
import time

MISSED = "missed"  # what judge_one returns where the fault did not come to pass
PROGRESS = 20  # seconds between two lines that say how far it is


def feed(folder, cases, answers, variable, until):
    """Lets a process judge cases of the queue; None at its end."""
    os.mkdir(folder)
    with subprocess.Popen([sys.executable, os.path.abspath(sys.argv[0])], cwd=folder, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, env={**os.environ, variable: "-"}) as process:
        while time.monotonic() < until:
            try:
                case = cases.popleft()
            except IndexError:
                break
            try:
                process.stdin.write(case + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except BrokenPipeError:
                answer = ""
            answers.put((case, json.loads(answer) if answer else f"the judge in {folder} died"))
            if not answer:
                break
    answers.put(None)


def verdicts(cases, judge_one, variable):
    """Each case with what is wrong with it, None, or MISSED. What is left in `cases` was not begun."""
    jobs = min(int(os.environ.get("MXFP4_JOBS", "1")), len(cases))
    until = time.monotonic() + float(os.environ.get("MXFP4_SECONDS", "inf"))
    if jobs < 2:
        while cases and time.monotonic() < until:
            case = cases.popleft()
            yield case, judge_one(case)
        return
    answers = queue.Queue()
    for job in range(jobs):
        threading.Thread(target=feed, args=(os.path.abspath(f"job-{job:04}"), cases, answers, variable, until)).start()
    while jobs > 0:
        answer = answers.get()
        if answer:
            yield answer
        else:
            jobs -= 1


def sample(cases, count, drawn):
    """`count` of the cases, or all if there are fewer."""
    return drawn.sample(cases, min(count, len(cases)))


def main(variable, usual, prepare, all_cases, judge_one, draw=sample):
    """The whole of a script; True: something is wrong. `variable` says which cases: a number of them, drawn by MXFP4_SEED
    (1), `usual` if it is not set; "all"; or one by its name. judge_one: what is wrong with a case, None, or MISSED."""
    wanted = os.environ.get(variable, str(usual))
    prepare()
    if wanted == "-":  # a process that verdicts() started
        for line in sys.stdin:
            print(json.dumps(judge_one(line.strip())), flush=True)
        return False
    cases = [wanted]
    if ":" not in wanted:
        seed, cases = int(os.environ.get("MXFP4_SEED", "1")), all_cases()
        total = len(cases)
        drawn = random.Random(seed)
        cases = sample(cases, total, drawn) if wanted == "all" else draw(cases, int(wanted), drawn)
        print(f"{len(cases)} of {total} cases, seed {seed}", flush=True)
    return judge_all(collections.deque(cases), judge_one, variable)


def judge_all(cases, judge_one, variable):
    """Prints what is wrong with each case, as a replay by this variable. Whether something is wrong."""
    judged = bad = missed = 0
    words = time.monotonic() + PROGRESS
    for case, wrong in verdicts(cases, judge_one, variable):
        judged += wrong != MISSED
        missed += wrong == MISSED
        if wrong and wrong != MISSED:
            bad += 1
            print(f"{variable}={case}: {wrong}", flush=True)
        if time.monotonic() > words:
            words += PROGRESS
            print(f"  {judged} judged, {bad} badly, {missed} did not come to pass, {len(cases)} left", flush=True)
    if cases:
        print(f"{len(cases)} cases were not begun")
    print(f"{judged} cases, {bad} of them badly")
    return bad > 0 or judged == 0
