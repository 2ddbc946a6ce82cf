"""Modules of PyTorch with loops, for its TorchScript compiler, which reads their source."""

import torch


class ForLoop(torch.nn.Module):  # type: ignore[misc]  # torch has no types
    """A recurrence of a number of turns that is an input."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        for i in range(n):
            x = torch.tanh(self.layer(x)) + i
        return x


class WhileLoop(torch.nn.Module):  # type: ignore[misc]  # torch has no types
    """Halves as long as the sum is large."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while bool(x.abs().sum() > 1.0):
            x = x * 0.5
        return x


class IfLoop(torch.nn.Module):  # type: ignore[misc]  # torch has no types
    """Adds in every other turn."""

    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        y = x
        for i in range(n):
            if i % 2 == 0:
                y = y + x
            else:
                y = torch.neg(y)
                y = y * 0.5
        return y


LOOPS = {"for": ForLoop, "while": WhileLoop, "if": IfLoop}
