"""The arguments of the process."""
arguments = None


def get_server_args():
    return arguments
