"""What to say where efforts are asked of a model that has no actuators."""

from .multibody_model import MultibodyModel

WAYS_OUT = (
    'load its file with actuators="joints" for one at each joint of one degree of freedom that can bear an effort, or '
    "add them by plant.add_joint_actuator"
)


def missing_actuators(model: MultibodyModel) -> str:
    """A sentence for errors, with the way out; empty if the model has actuators."""
    return "" if model.num_actuators else f" The model has no actuators: {WAYS_OUT}."
