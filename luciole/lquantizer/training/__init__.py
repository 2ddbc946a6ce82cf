"""Fine-tune quantized models without their training code and without labels (extra
``tensorflow``).
"""

from luciole.lquantizer.training.settings import Epoch, FinetuneResult, FinetuneSettings
from luciole.lquantizer.training.train import finetune

__all__ = ["Epoch", "FinetuneResult", "FinetuneSettings", "finetune"]
