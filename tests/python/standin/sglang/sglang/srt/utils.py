"""Which platform it is: `kind`, cuda, hip, xpu or cpu."""
kind = "cuda"


def is_cuda():
    return kind == "cuda"


def is_hip():
    return kind == "hip"


def is_xpu():
    return kind == "xpu"


def is_cpu():
    return kind == "cpu"
