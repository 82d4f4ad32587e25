"""Mean absolute errors that others published, from the DenseReward project page (dense-reward.github.io)."""

from __future__ import annotations

DATA = ('overall', 'DROID', 'Isaac', 'RoboSuite', 'LIBERO')
MAE: dict[str, tuple[float, ...]] = {
    'DenseReward': (0.081, 0.259, 0.081, 0.051, 0.044),
    'RoboReward-8B': (0.230, 0.484, 0.185, 0.172, 0.431),
    'Robometer': (0.366, 0.521, 0.328, 0.345, 0.468),
    'Qwen3-VL-4B': (0.289, 0.532, 0.285, 0.195, 0.478),
}
SOURCE = 'dense-reward.github.io'
