"""The part of torch.cuda that names the architecture of an AMD GPU. There is no device."""


def is_initialized():
    return False


def current_device():
    raise RuntimeError("no device")


def get_device_properties(index):
    raise RuntimeError("no device")
