"""Calls: functions compiled as a whole outside `jit`, and numbers that are known while a program is traced."""
