"""Programs in C that several threads run at once, watched by gcc's sanitizer of threads."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from luciole.ir import Graph, Model, TensorType, Value
from luciole.ir.ops.activations import Tanh
from luciole.ir.ops.control_flow import CallOnce
from luciole.ir.ops.elementwise_binary import Add
from luciole.ir.ops.fully_connected import FullyConnected
from luciole.ir.ops.variables import AssignVariable, ReadVariable, VarHandle
from tests.compiler_support import STRICT, needs_compiler, program_of

pytestmark = needs_compiler

MAIN = """
#include <pthread.h>
#include <string.h>
#include "net.h"

enum { RUNS = 200 };

struct stream {
    float x[8];
    float y[RUNS][8];
    struct net_state state;
    int64_t arena[NET_ARENA_BYTES / 8 + 1];
};

static void *run(void *argument)
{
    struct stream *s = (struct stream *)argument;
    net_reset(&s->state);
    for (int k = 0; k < RUNS; k++) net_run(&s->state, ARENA s->x, s->y[k]);
    return 0;
}

int main(void)
{
    static struct stream alone[2], together[2];
    pthread_t threads[2];
    for (int n = 0; n < 2; n++) {
        for (int k = 0; k < 8; k++) alone[n].x[k] = (float)(n + 1) / (float)(k + 1);
        memcpy(together[n].x, alone[n].x, sizeof alone[n].x);
        run(&alone[n]);
    }
    for (int n = 0; n < 2; n++) pthread_create(&threads[n], 0, run, &together[n]);
    for (int n = 0; n < 2; n++) pthread_join(threads[n], 0);
    for (int n = 0; n < 2; n++)
        if (memcmp(alone[n].y, together[n].y, sizeof alone[n].y)) return 1;
    return 0;
}
"""
"""Two streams, one after the other and then at once: 0 where the results are the same."""

RACE = 66
"""The exit code of a program in which threads write the same memory, as gcc's sanitizer has it."""


def recurrent() -> Model:
    """Make a network of a variable, and of tensors between inputs and outputs."""
    rng, model = np.random.default_rng(0), Model()
    graph, first = model.add_graph(Graph("main")), model.add_graph(Graph("first"))
    zeros = first.add_constant("zeros", np.zeros((1, 8), np.float32))
    first_handle = first.append(VarHandle(shared_name="held"), "first_handle").output
    first.append(AssignVariable(first_handle, zeros))
    graph.append(CallOnce(init_graph=first))
    x = graph.add_input("x", (1, 8))
    weights = graph.add_constant("weights", rng.normal(size=(8, 8)).astype(np.float32))
    handle = graph.append(VarHandle(shared_name="held"), "handle").output
    held = graph.add_value(Value("before", TensorType.FLOAT32, (1, 8)))
    graph.append(ReadVariable(handle), results=[held])
    dense = graph.append(FullyConnected(x, weights, None), "dense").output
    next_ = graph.append(Tanh(graph.append(Add(dense, held), "sum").output), "next").output
    graph.append(AssignVariable(handle, next_))
    graph.outputs = [graph.append(FullyConnected(next_, weights, None), "y").output]
    return model


@pytest.mark.parametrize(("arena", "code"), [("caller", 0), ("static", RACE)])
def test_streams_run_at_once_as_the_header_says(arena: str, code: int, tmp_path: Path) -> None:
    program = program_of(recurrent(), arena=arena)
    assert program.arena_bytes
    given = "s->arena," if arena == "caller" else ""
    for name, text in {**program.files, "main.c": MAIN.replace("ARENA s", f"{given} s")}.items():
        (tmp_path / name).write_text(text)
    made = str(tmp_path / "threads")
    files = [str(tmp_path / name) for name in ("net.c", "main.c")]
    command = ["gcc", *STRICT, "-g", "-O1", "-pthread", "-fsanitize=thread", *files, "-o", made]
    subprocess.run(command, check=True)
    ran = subprocess.run([made], check=False, capture_output=True, text=True)
    assert ran.returncode == code, ran.stderr
    said = "Several threads may call it at once, each with an arena and a state of its own"
    assert bool(re.search(said, program.header)) == (arena == "caller")
    assert ("One run at a time" in program.header) == (arena == "static")
