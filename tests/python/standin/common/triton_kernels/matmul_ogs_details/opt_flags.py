"""Stand-in: the process-wide options of the kernel."""
in_force = {}


def update_opt_flags_constraints(constraints):
    in_force.update(constraints)
