"""A graph by circuit-tracer, of a GGUF model in F32 and transcoders in its own layout, written as plain arrays.

python trace.py CONFIG.json: model, transcoders (folder, layers, skip, across), tokens, max_features, batch, out (folder).
"""
import json
import os
import resource
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "numerics"))
import gguf_reader  # noqa: E402
import torch  # noqa: E402
from circuit_tracer.attribution.attribute import attribute  # noqa: E402
from circuit_tracer.graph import compute_graph_scores, prune_graph  # noqa: E402
from circuit_tracer.replacement_model.replacement_model_transformerlens import TransformerLensReplacementModel  # noqa: E402
from circuit_tracer.transcoder.activation_functions import JumpReLU  # noqa: E402
from circuit_tracer.transcoder.cross_layer_transcoder import load_clt  # noqa: E402
from circuit_tracer.transcoder.single_layer_transcoder import SingleLayerTranscoder, TranscoderSet  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from tokenizers import Tokenizer, models  # noqa: E402
from transformer_lens import HookedTransformerConfig  # noqa: E402
from transformers import PreTrainedTokenizerFast  # noqa: E402


def transcoders(config, width):
    if config["across"]:
        return load_clt(config["folder"], "mlp.hook_in", "mlp.hook_out", device=torch.device("cpu"), dtype=torch.float32)
    found = {}
    for layer in range(config["layers"]):
        arrays = load_file(os.path.join(config["folder"], f"layer_{layer}.safetensors"))
        threshold = arrays["activation_function.threshold"]
        one = SingleLayerTranscoder(
            width, len(threshold), JumpReLU(threshold), layer, skip_connection="W_skip" in arrays, dtype=torch.float32
        )
        one.load_state_dict(arrays)
        found[layer] = one
    return TranscoderSet(found, "mlp.hook_in", "mlp.hook_out")


def replacement(path, one_set):
    meta, weights = gguf_reader.read(path)
    name = meta["general.architecture"]
    of = lambda key: meta[f"{name}.{key}"]  # noqa: E731
    width, heads = of("embedding_length"), of("attention.head_count")
    vocabulary = len(weights["token_embd.weight"])
    head = width // heads
    config = HookedTransformerConfig(
        n_layers=of("block_count"), d_model=width, n_ctx=512, d_head=head, n_heads=heads,
        n_key_value_heads=of("attention.head_count_kv"), d_mlp=of("feed_forward_length"), d_vocab=vocabulary,
        act_fn="silu", gated_mlp=True, normalization_type="RMS", final_rms=True, positional_embedding_type="rotary",
        rotary_dim=head, rotary_base=int(of("rope.freq_base")), rotary_adjacent_pairs=name == "llama",
        eps=float(of("attention.layer_norm_rms_epsilon")), dtype=torch.float32, device="cpu", tokenizer_prepends_bos=False,
        model_name="random", original_architecture="LlamaForCausalLM",
    )  # fmt: skip
    words = {f"<{i}>": i for i in range(vocabulary)}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="<0>")), bos_token="<1>", pad_token="<1>", unk_token="<0>"
    )
    model = TransformerLensReplacementModel.from_config(config, one_set)
    # Not set_tokenizer(), which loads another copy by name.
    model.tokenizer = tokenizer
    tensor = lambda key: torch.from_numpy(np.ascontiguousarray(weights[key]).astype(np.float32))  # noqa: E731
    state = {
        "embed.W_E": tensor("token_embd.weight"),
        "ln_final.w": tensor("output_norm.weight"),
        "unembed.old_unembed.W_U": (tensor("output.weight") if "output.weight" in weights else tensor("token_embd.weight")).T,
        "unembed.old_unembed.b_U": torch.zeros(vocabulary),
    }
    for block in range(config.n_layers):
        mine = lambda key: tensor(f"blk.{block}.{key}.weight")  # noqa: E731, B023
        split = lambda key: mine(key).reshape(-1, head, width).transpose(1, 2)  # noqa: E731, B023
        state |= {
            f"blocks.{block}.ln1.w": mine("attn_norm"),
            f"blocks.{block}.ln2.w": mine("ffn_norm"),
            f"blocks.{block}.attn.W_Q": split("attn_q"),
            f"blocks.{block}.attn._W_K": split("attn_k"),
            f"blocks.{block}.attn._W_V": split("attn_v"),
            f"blocks.{block}.attn.W_O": mine("attn_output").T.reshape(heads, head, width),
            f"blocks.{block}.mlp.old_mlp.W_gate": mine("ffn_gate").T,
            f"blocks.{block}.mlp.old_mlp.W_in": mine("ffn_up").T,
            f"blocks.{block}.mlp.old_mlp.W_out": mine("ffn_down").T,
        }
    with torch.no_grad():
        parameters = dict(model.named_parameters())
        for key, value in state.items():
            assert parameters[key].shape == value.shape, (key, parameters[key].shape, value.shape)
            parameters[key].copy_(value)
        for key, value in parameters.items():
            if key.split(".")[-1] in ("b_Q", "_b_K", "_b_V", "b_O", "b_in", "b_out"):
                value.zero_()
    return model


def main(path):
    with open(path) as file:
        config = json.load(file)
    torch.set_num_threads(config["threads"])
    model = replacement(config["model"], transcoders(config["transcoders"], gguf_reader.read(config["model"])[1]["token_embd.weight"].shape[1]))
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.monotonic()
    graph = attribute(
        torch.tensor(config["tokens"]), model, batch_size=config["batch"], max_feature_nodes=config.get("max_features")
    )
    seconds = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    pruned = prune_graph(graph, 0.8, 0.98)
    replacement_score, completeness = compute_graph_scores(graph)
    out = config["out"]
    selected = graph.active_features[graph.selected_features]
    graph.adjacency_matrix.float().contiguous().numpy().tofile(os.path.join(out, "adjacency.f32"))
    selected.int().contiguous().numpy().tofile(os.path.join(out, "features.i32"))
    pruned.node_mask.numpy().astype(np.uint8).tofile(os.path.join(out, "kept.u8"))
    result = {
        "nodes": graph.adjacency_matrix.shape[0], "features": len(selected), "edges": int(pruned.edge_mask.sum()),
        "targets": [target.vocab_idx for target in graph.logit_targets], "weights": graph.logit_probabilities.tolist(),
        "replacement": replacement_score, "completeness": completeness, "seconds": seconds,
        "processor": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "peak": after.ru_maxrss * 1024,
    }  # fmt: skip
    with open(os.path.join(out, "result.json"), "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main(sys.argv[1])
