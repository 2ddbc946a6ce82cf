"""Lines of the proof that a report holds."""

from __future__ import annotations

from collections.abc import Mapping

from luciole.drawing.nodes import Json
from luciole.ir import LucioleError
from luciole.ir.errors import SLIPS
from luciole.lquantizer.proof import Fidelity, Measured, OutputProof, Proof


def report_proof(content: object, path: str) -> list[str]:
    """Write the proof of a report as programs print it, and its faults; nothing where it has none.
    Raises LucioleError for one that luciole did not write.
    """
    proof = content.get("proof") if isinstance(content, Mapping) else None
    if proof is None:
        return []
    try:
        metric = proof["metric"] and Measured(**proof["metric"])
        outputs = [_output(one) for one in proof["outputs"]]
        fields = {**proof, "outputs": outputs, "metric": metric}
        read = Proof(**fields)
        return [*(f"the file is wrong: {fault}" for fault in read.faults), *read.lines()]
    except SLIPS as error:
        raise LucioleError(f"{path}: its proof is not one of luciole's ({error})") from None


def _output(content: Json) -> OutputProof:
    simulation = content["simulation"] and Fidelity(**content["simulation"])
    runtimes = {name: Fidelity(**one) for name, one in content["runtimes"].items()}
    return OutputProof(content["name"], Fidelity(**content["file"]), simulation, runtimes)
