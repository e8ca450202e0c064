"""How XLA compiles in tests: in little time, or as users have it."""

import jax

HAS_OLDER_GENERATOR = jax.__version_info__ < (0, 11)  # of code, which takes less time


def options(level: int, newer_generator: bool) -> dict[str, int | bool]:
    """The options of `jax.jit` and `Lowered.compile`, whatever a trimmed run sets."""
    generator = {"xla_cpu_use_fusion_emitters": newer_generator} if HAS_OLDER_GENERATOR else {}
    return {"xla_backend_optimization_level": level} | generator


FAST_TO_COMPILE, AS_USERS_HAVE_IT = options(0, False), options(3, True)
SAME_KERNELS = options(0, True)  # as users have, of code that is not optimized
