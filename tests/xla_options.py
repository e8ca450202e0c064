"""How XLA compiles in tests: in little time, or as users have it."""

import jax

HAS_OLDER_GENERATOR = jax.__version_info__ < (0, 11)  # of code, which takes less time


def options(level: int, newer_generator: bool, parts: int = 32) -> dict[str, int | bool]:
    """The options of `jax.jit` and `Lowered.compile`, whatever a trimmed run sets.

    LLVM compiles a program in up to `parts` parts, which other cores could take: those have tests of their own.
    """
    generator = {"xla_cpu_use_fusion_emitters": newer_generator} if HAS_OLDER_GENERATOR else {}
    return {"xla_backend_optimization_level": level, "xla_cpu_parallel_codegen_split_count": parts} | generator


FAST_TO_COMPILE, AS_USERS_HAVE_IT = options(0, False, parts=1), options(3, True)
SAME_KERNELS = options(0, True)  # as users have, of code that is not optimized
