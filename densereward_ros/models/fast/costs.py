"""What one more pass of the language model costs, in tokens of a pass that runs anyway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Machine:
    """Rates of a common machine of its kind; a factor of two does not change much.

    layer_s: seconds that a layer takes to be launched, however little it does. token_s: seconds a
    layer takes for a token beside its products with weights. multiply: operations a second.
    read: bytes of weights a second.
    """

    layer_s: float
    token_s: float
    multiply: float
    read: float


_CPU = Machine(layer_s=2.5e-3, token_s=1e-5, multiply=4e10, read=1.5e10)
_GPU = Machine(layer_s=4e-4, token_s=1e-7, multiply=1e14, read=5e11)


def pass_cost(network: Any) -> float:
    """A pass launches every layer and reads every weight; a token computes with the weights.

    Not measured but reckoned, so that the same model makes the same passes on every run.
    """
    machine = _CPU if network.device.type == 'cpu' else _GPU
    layers = network.model.language_model.layers
    weights = sum(weight.numel() for weight in layers.parameters())
    whole_pass = len(layers) * machine.layer_s + weights * network.dtype.itemsize / machine.read
    token = len(layers) * machine.token_s + 2 * weights / machine.multiply
    return whole_pass / token
