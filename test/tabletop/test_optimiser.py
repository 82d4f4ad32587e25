"""Muon: orthogonal updates of every shape, of the size that is asked for."""

from __future__ import annotations

import pytest
import torch

from densereward_ros.tabletop.optimiser import Muon, orthogonal


@pytest.mark.parametrize('shape', [(8, 8), (8, 20), (32, 96)])
def test_orthogonal_keeps_directions_and_evens_out_sizes(shape):
    """Singular values between 0.6 and 1.3, and the same singular vectors as before."""
    torch.manual_seed(0)
    matrices = torch.randn(3, *shape)
    matrices[1] *= 1000
    done = orthogonal(matrices)
    assert done.shape == matrices.shape
    for before, after in zip(matrices, done):
        left, _, right = torch.linalg.svd(before, full_matrices=False)
        inside = left.T @ after @ right.T
        sizes = inside.diagonal()
        assert 0.6 < sizes.min() and sizes.max() < 1.3
        assert (inside - sizes.diag()).abs().max() < 1e-3


def test_a_matrix_and_its_transpose_are_moved_alike():
    """Tall and wide matrices share a group, and come out as each other's transpose."""
    torch.manual_seed(0)
    start, gradient = torch.randn(6, 10), torch.randn(6, 10)
    wide, tall = torch.nn.Parameter(start.clone()), torch.nn.Parameter(start.T.clone())
    muon = Muon([wide, tall])
    for _ in range(3):
        wide.grad, tall.grad = gradient, gradient.T
        muon.step(0.1)
    assert torch.allclose(wide, tall.T, atol=1e-6)
    assert not torch.allclose(wide, start, atol=0.05)


def test_an_update_is_about_a_fifth_of_the_rate_in_every_entry():
    """The root of the mean square does not depend on the shape or on the gradient's size."""
    for shape, size in (((16, 16), 1e-4), ((16, 64), 1e3), ((64, 16), 1.0)):
        torch.manual_seed(1)
        weight = torch.nn.Parameter(torch.zeros(shape))
        weight.grad = size * torch.randn(shape)
        Muon([weight]).step(0.1)
        assert weight.detach().square().mean().sqrt().item() == pytest.approx(0.02, rel=0.2)


def test_it_finds_the_minimum_of_a_badly_scaled_problem():
    """A least-squares problem whose directions differ a thousandfold is solved in a few hundred steps."""
    torch.manual_seed(0)
    inputs = torch.randn(200, 8) * torch.logspace(0, -3, 8)
    goal = torch.randn(8, 8)
    weight = torch.nn.Parameter(torch.zeros(8, 8))
    muon = Muon([weight])
    for k in range(400):
        loss = (inputs @ (weight - goal)).square().mean()
        weight.grad = torch.autograd.grad(loss, weight)[0]
        muon.step(0.3 * (1 - k / 400))
    assert loss.item() < 1e-3
