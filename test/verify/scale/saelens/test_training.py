"""SAELens's own trainer learns a dictionary from an extraction's rows."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path

import numpy as np
import tapline_lab as tl
import torch
from sae_lens import StandardTrainingSAE, StandardTrainingSAEConfig
from sae_lens.config import LoggingConfig, SAETrainerConfig
from sae_lens.training.sae_trainer import SAETrainer

PEOPLE, PLACES = ("Tom", "Lucy", "Anna", "The king"), ("France", "Spain", "Japan", "Italy", "Egypt")


class TestTraining(unittest.TestCase):
    def test_saelens_trains_on_an_extraction(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        data = Path(folder.name) / "texts.txt"
        data.write_text("".join(f"{who} likes {where} more than {other}\n" for who in PEOPLE for where in PLACES for other in PLACES))
        lab = tl.Lab(os.environ["TAPLINE_TEST_LAB"])
        lab.wait(lab.extract("demo", data, Path(folder.name) / "rows", layers=[4], rows="all", shard_tokens=256))
        rows = tl.Rows(Path(folder.name) / "rows")
        # What is left over, of the whole, if every row is replaced by the mean of all.
        whole = np.concatenate(list(rows.batches(4, 1)))
        variance = float(((whole - whole.mean(0)) ** 2).sum(1).mean())

        torch.manual_seed(0)
        sae = StandardTrainingSAE(StandardTrainingSAEConfig(d_in=128, d_sae=256, l1_coefficient=0.01, device="cpu"))
        batches, size = 1000, 64
        settings = SAETrainerConfig(
            n_checkpoints=0, checkpoint_path=None, save_final_checkpoint=False, total_training_samples=batches * size,
            device="cpu", autocast=False, lr=1e-3, lr_end=1e-4, lr_scheduler_name="constant", lr_warm_up_steps=0,
            adam_beta1=0.9, adam_beta2=0.999, lr_decay_steps=0, n_restart_cycles=1, train_batch_size_samples=size,
            dead_feature_window=1000, feature_sampling_window=2000, logger=LoggingConfig(log_to_wandb=False),
        )  # fmt: skip
        trained = SAETrainer(settings, sae, rows.data_provider(4, size, buffer=512)).fit()
        with torch.no_grad():
            inputs = torch.from_numpy(whole)
            left = float(((trained(inputs) - inputs) ** 2).sum(1).mean())
        print(f"unexplained: {left / variance:.4f} of the variance")
        self.assertLess(left, 0.1 * variance)


if __name__ == "__main__":
    unittest.main()
