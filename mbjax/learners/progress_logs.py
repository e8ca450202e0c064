"""Progress of a learner to TensorBoard or Weights & Biases."""

from collections.abc import Callable
from typing import Any

from mbjax.errors import ModelError


def progress_to(log: Any) -> Callable[..., None]:
    """A callback that writes each progress of a learner to a log, by the number of its steps.

        train(…, progress_fn=progress_to(tensorboardX.SummaryWriter("runs/walk")))      # brax
        train_by_gradients(…, tell=progress_to(wandb.init(project="walk")))             # mbjax

    The log is a `SummaryWriter` of torch or tensorboardX, or a run of wandb.
    """
    if hasattr(log, "add_scalar"):

        def write(steps: int, numbers: dict[str, float]) -> None:
            for name, number in numbers.items():
                log.add_scalar(name, number, steps)
            log.flush()

    elif hasattr(log, "log"):

        def write(steps: int, numbers: dict[str, float]) -> None:
            log.log(numbers, step=steps)

    else:
        raise ModelError(
            f"progress_to: the log must be a SummaryWriter or a run of wandb, got {type(log).__name__}; for others "
            "give the learner a function of your own."
        )

    def tell(*progress: Any) -> None:  # (steps, numbers) of brax, or one record
        steps, numbers = progress if len(progress) == 2 else (progress[0].steps, progress[0]._asdict())
        write(int(steps), {name: float(number) for name, number in numbers.items()})

    return tell
