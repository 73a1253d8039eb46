"""Stand-in: the process-wide options of the kernel."""
constraints = {}


def update_opt_flags_constraints(more):
    constraints.update(more)
