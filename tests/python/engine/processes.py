"""Loads in processes forked from one that has imported vLLM, so that none sees what another left behind."""
import gc
import os
import pickle
import sys
import traceback


def forked(function, *arguments):
    """The value of function(*arguments) in a child, or the text of its exception as ("raised", type, text)."""
    return collected(begun(function, *arguments))


def begun(function, *arguments):
    out, into = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        if not os.environ.get("MXFP4_TEST_LOUD"):
            quiet = os.open("engine.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(quiet, 1), os.dup2(quiet, 2)
        try:
            value = function(*arguments)
        except BaseException as error:
            traceback.print_exc()
            value = ("raised", type(error).__name__, str(error))
        with os.fdopen(into, "wb") as file:
            pickle.dump(value, file)
        os._exit(0)
    os.close(into)
    return pid, out


def collected(child):
    pid, out = child
    with os.fdopen(out, "rb") as file:
        data = file.read()
    os.waitpid(pid, 0)
    return pickle.loads(data) if data else ("raised", "Death", "the process ended without an answer")


def live_bytes():
    """Bytes of all tensors that something still holds."""
    import torch

    gc.collect()
    storages = {}
    for thing in gc.get_objects():
        # torch.compile leaves tensors that have no memory either.
        if isinstance(thing, torch.Tensor) and not thing.is_meta and type(thing).__name__ != "FakeTensor":
            storage = thing.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())
