"""Dictionaries that SAELens makes, writes and runs: its results for some rows.

    saelens.py FOLDER [ROWS PATH...]

Without more than a folder, those that SAELens makes itself; otherwise what it makes of rows (a file of float32) by the
dictionaries at these paths, which somebody else wrote. Prints JSON: a case a dictionary, with the rows, SAELens's activations [rows, features] and its reconstruction.
"""
import json
import os
import sys

import numpy as np
import torch
from sae_lens import (
    BatchTopKTrainingSAE,
    BatchTopKTrainingSAEConfig,
    GatedSAE,
    GatedSAEConfig,
    JumpReLUSAE,
    JumpReLUSAEConfig,
    MatryoshkaBatchTopKTrainingSAE,
    MatryoshkaBatchTopKTrainingSAEConfig,
    StandardSAE,
    StandardSAEConfig,
    TopKSAE,
    TopKSAEConfig,
)
from sae_lens.saes import transcoder
from sae_lens.saes.sae import SAE, SAEMetadata

folder = sys.argv[1]
hidden, features, count = 96, 512, 24
torch.manual_seed(7)
rows = 3 * torch.randn(count, hidden) + torch.randn(hidden)


def settings(**more):
    metadata = SAEMetadata(model_name="toy", hook_name="blocks.3.hook_resid_post", prepend_bos=True)
    return {"d_in": hidden, "d_sae": features, "dtype": "float32", "device": "cpu", "metadata": metadata, **more}


def filled(sae):
    """Weights as no initialisation leaves them: nothing zero, decoder rows of any length."""
    with torch.no_grad():
        for name, parameter in sae.named_parameters():
            scale = 0.2 if name.startswith("W_") else 0.5
            parameter.copy_(scale * torch.randn_like(parameter))
            if name == "threshold":
                parameter.abs_()
    return sae


def made():
    for bias in (True, False):
        for scaling in ("none", "constant_norm_rescale", "layer_norm"):
            name = f"standard-{bias}-{scaling}"
            more = settings(apply_b_dec_to_input=bias, normalize_activations=scaling)
            yield name, filled(StandardSAE(StandardSAEConfig(**more)))
    yield "jumprelu", filled(JumpReLUSAE(JumpReLUSAEConfig(**settings())))
    yield "gated", filled(GatedSAE(GatedSAEConfig(**settings())))
    for rescaled in (False, True):
        more = settings(k=20, rescale_acts_by_decoder_norm=rescaled)
        yield f"topk-{rescaled}", filled(TopKSAE(TopKSAEConfig(**more)))
    for name, kind, config, more in (
        ("batchtopk", BatchTopKTrainingSAE, BatchTopKTrainingSAEConfig, {}),
        ("matryoshka", MatryoshkaBatchTopKTrainingSAE, MatryoshkaBatchTopKTrainingSAEConfig,
         {"matryoshka_widths": [64, features]}),
    ):
        sae = filled(kind(config(**settings(k=20, rescale_acts_by_decoder_norm=False, **more))))
        sae.topk_threshold.fill_(1.5)
        yield name, sae
    for kind in ("Transcoder", "SkipTranscoder", "JumpReLUTranscoder", "JumpReLUSkipTranscoder"):
        hooks = {"hook_name": "blocks.3.mlp.hook_in", "hook_name_out": "blocks.3.hook_mlp_out"}
        metadata = SAEMetadata(model_name="toy", prepend_bos=True, **hooks)
        more = settings(d_out=hidden, metadata=metadata, apply_b_dec_to_input=False)
        config = getattr(transcoder, kind + "Config")(**more)
        yield kind, filled(getattr(transcoder, kind)(config))


def written(name, sae):
    path = os.path.join(folder, name)
    (sae.save_inference_model if hasattr(sae, "save_inference_model") else sae.save_model)(path)
    # What was written is the reference, as SAELens itself reads it.
    return path, SAE.load_from_disk(path)


def all_of_them():
    if len(sys.argv) == 2:
        for name, sae in made():
            yield name, *written(name, sae)
    for path in sys.argv[3:]:
        yield path, path, SAE.load_from_disk(path)


cases = []
with torch.no_grad():
    for name, path, loaded in all_of_them():
        if len(sys.argv) > 2:
            hidden = loaded.cfg.d_in
            rows = torch.from_numpy(np.fromfile(sys.argv[2], "<f4").reshape(-1, hidden))
        found = loaded.encode(rows.clone())
        # After a full pass: some scalings keep what they undo.
        decoded = loaded(rows.clone()) if isinstance(loaded, transcoder.Transcoder) else loaded.decode(found)
        cases.append({
            "name": name,
            "path": path,
            "hidden": hidden,
            "rows": rows.flatten().tolist(),
            "features": found.flatten().tolist(),
            "decoded": decoded.flatten().tolist(),
        })
print(json.dumps(cases))
