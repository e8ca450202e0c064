"""Tasks of MuJoCo Playground: the same observations, rewards and ends of episodes, with the physics of mbjax."""

from .biped import JoystickBiped as JoystickBiped
from .biped_rules import BERKELEY as BERKELEY
from .biped_rules import G1 as G1
from .biped_rules import BipedRules as BipedRules
from .cart_pole import PlaygroundCartPole as PlaygroundCartPole
from .quadruped import JoystickQuadruped as JoystickQuadruped
from .reacher import PlaygroundReacher as PlaygroundReacher
