"""What XLA reads once, when it starts, and how many threads it then has."""

import os

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"


def set_environment(gpu, threads, deterministic):
    """Before JAX is imported. The size of XLA's thread pool on a CPU has two names, an old and a new one."""
    if threads:
        os.environ["PJRT_NPROC"] = os.environ["NPROC"] = str(threads)
    if not gpu:
        os.environ["JAX_PLATFORMS"] = "cpu"
        return
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    if deterministic and not is_deterministic():
        os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " " + DETERMINISTIC).strip()


def is_deterministic():
    return DETERMINISTIC in os.environ.get("XLA_FLAGS", "").split()


def pool_threads():
    """Size of XLA's compute pool, counted by the names of its threads; None where the system does not show them."""
    folder = "/proc/self/task"
    if not os.path.isdir(folder):
        return None
    names = []
    for task in os.listdir(folder):
        with open(os.path.join(folder, task, "comm")) as file:
            names.append(file.read().strip())
    return names.count("tf_XLAEigen") or None
