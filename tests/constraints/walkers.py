"""A floating trunk with two legs, and contacts of its feet."""

import numpy as np

import mbjax

LINK = """<link name="{name}"><inertial><origin xyz="0.02 {y} -0.1"/><mass value="{m}"/>
<inertia ixx="0.03" iyy="0.04" izz="0.02" ixy="0.001" ixz="0.002" iyz="-0.001"/></inertial></link>"""
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="{xyz}" rpy="0.1 0.2 0"/><axis xyz="{axis}"/><limit lower="-9" upper="9" effort="99" velocity="9"/>
<dynamics damping="0.2"/></joint>"""


def walker() -> mbjax.MultibodyModel:
    """A floating trunk with two legs of two joints."""
    links = [("trunk", 0.03, 3.0), ("thigh_l", 0.01, 1.0), ("shank_l", 0.02, 0.6), ("thigh_r", -0.01, 1.1)]
    links.append(("shank_r", 0.0, 0.5))
    joints = [
        ("hip_l", "trunk", "thigh_l", "0.1 0.2 0", "0 1 0"),
        ("knee_l", "thigh_l", "shank_l", "0 0 -0.3", "0.6 0.8 0"),
        ("hip_r", "trunk", "thigh_r", "0.1 -0.2 0", "1 0 0"),
        ("knee_r", "thigh_r", "shank_r", "0 0 -0.3", "0 1 0"),
    ]
    text = "".join(LINK.format(name=n, y=y, m=m) for n, y, m in links)
    keys = "name", "parent", "child", "xyz", "axis"
    text += "".join(JOINT.format(**dict(zip(keys, joint, strict=True))) for joint in joints)
    return mbjax.load(f'<robot name="walker">{text}</robot>', base="floating", time_step=0.01, actuators="joints")


def contacts_of(model: mbjax.MultibodyModel) -> mbjax.constraints.BoundConstraintSet:
    """Two feet of three rows with a velocity gain, and a point of the trunk with one slanted normal."""
    feet = mbjax.ConstraintSet()
    for side, x in (("l", 0.05), ("r", -0.02)):
        feet = feet.add_contact_constraint(
            f"shank_{side}", [x, 0.01, -0.3], np.eye(3), name=side, stabilization_time=0.1
        )
    return feet.add_contact_constraint("trunk", [0.1, 0.05, 0.2], [[0.6, 0.0, 0.8]], name="trunk").bind(model)
