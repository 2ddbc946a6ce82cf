"""Fine-tune quantized models without their training code and without labels (extra
``tensorflow``).
"""

from luciole.lquantizer.finetune.settings import Epoch, FinetuneResult, FinetuneSettings
from luciole.lquantizer.finetune.train import finetune

__all__ = ["Epoch", "FinetuneResult", "FinetuneSettings", "finetune"]
