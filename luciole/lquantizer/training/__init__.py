"""Fine-tune quantized models without their training code and without labels (extra
``tensorflow``).
"""

from luciole.lquantizer.training.settings import Epoch, FinetuneResult, FinetuneSettings
from luciole.lquantizer.training.train import finetune
from luciole.lquantizer.training.trainer import check_teacher
from luciole.lquantizer.training.uniform_settings import UniformSettings

__all__ = [
    "Epoch",
    "FinetuneResult",
    "FinetuneSettings",
    "UniformSettings",
    "check_teacher",
    "finetune",
]
