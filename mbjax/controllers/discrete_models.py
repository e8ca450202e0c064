"""What regulators ask of a model: steps, and actuators."""

from mbjax.errors import ModelError
from mbjax.execution import require_one_model
from mbjax.model import MultibodyModel, missing_actuators


def require_discrete_model(call: str, model: MultibodyModel) -> None:
    """Raises `ModelError` for a continuous model, or one without actuators."""
    require_one_model(model, call)
    if not model.num_actuators:
        raise ModelError(f"{call}: there is nothing to drive.{missing_actuators(model)}")
    if not model.is_discrete:
        raise ModelError(
            f"{call}: the model is continuous, and feedback is computed for steps. Load it with time_step=, that of "
            "your controller."
        )
