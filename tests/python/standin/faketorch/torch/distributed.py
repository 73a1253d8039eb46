"""torch.distributed of a process that is alone."""


def is_available():
    return False
