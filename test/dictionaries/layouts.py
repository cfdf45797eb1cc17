"""Writes one small dictionary in each published layout, and what each layout's own equations make of some rows.

    layouts.py FOLDER SEED

The equations are written from the publishers' pages, in float64, per layout, and share nothing with tapline: no form
that is common to all. Prints JSON: a list of cases.
"""
import json
import os
import struct

import numpy as np

from cases import case, f32, folder, print_case, relu, rng, top


def save_safetensors(path, tensors, metadata=None):
    header, blobs, at = {}, [], 0
    if metadata:
        header["__metadata__"] = metadata
    names = {"float32": "F32", "float64": "F64", "float16": "F16"}
    for name, array in tensors.items():
        blob = np.ascontiguousarray(array).tobytes()
        header[name] = {
            "dtype": names[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [at, at + len(blob)],
        }
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def place(name):
    path = os.path.join(folder, name)
    os.makedirs(path)
    return path


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file)


def sizes():
    return int(rng.integers(2, 80)), int(rng.integers(2, 170)), int(rng.integers(1, 90))


# SAELens: W_enc [d, F], W_dec [F, d]. Every architecture, both versions of cfg.json, each normalisation.
for architecture in ["standard", "jumprelu", "log_jumprelu", "topk", "rescaled_topk", "old_topk", "gated", "batchtopk",
                     "matryoshka_batchtopk", "rescaled_batchtopk", "layer_norm", "constant_norm", "old_factor"]:
    d, F, n = sizes()
    x = f32(n, d, scale=3)
    t = {"W_enc": f32(d, F), "W_dec": f32(F, d), "b_enc": f32(F), "b_dec": f32(d)}
    k = int(rng.integers(1, F + 1))
    cfg = {"d_in": d, "d_sae": F, "dtype": "float32", "apply_b_dec_to_input": bool(rng.integers(2)),
           "normalize_activations": "none", "reshape_activations": "none", "architecture": architecture,
           "metadata": {"model_name": "toy", "hook_name": "blocks.3.hook_resid_post", "prepend_bos": False,
                        "sae_lens_version": "6.18.0"}}
    W, D = t["W_enc"].astype(float), t["W_dec"].astype(float)
    z = x.astype(float)
    undo = lambda y: y
    if architecture == "layer_norm":
        mu = z.mean(1, keepdims=True)
        sd = z.std(1, ddof=1, keepdims=True)
        z = (z - mu) / (sd + 1e-5)
        undo = lambda y, mu=mu, sd=sd: y * sd + mu
        cfg.update(architecture="standard", normalize_activations="layer_norm")
    if architecture == "constant_norm":
        length = np.linalg.norm(z, axis=1, keepdims=True)
        z = z * np.sqrt(d) / length
        undo = lambda y, length=length: y * length / np.sqrt(d)
        cfg.update(architecture="standard", normalize_activations="constant_norm_rescale")
    subtract = cfg["apply_b_dec_to_input"]
    v = z - t["b_dec"] * subtract
    h = v @ W + t["b_enc"]
    if architecture == "jumprelu":
        t["threshold"] = np.abs(f32(F))
        f = relu(h) * (h > t["threshold"])
    elif architecture == "log_jumprelu":
        cfg["architecture"] = "jumprelu"
        t["log_threshold"] = f32(F)
        f = relu(h) * (h > np.exp(t["log_threshold"].astype(float)))
    elif architecture in ("batchtopk", "matryoshka_batchtopk"):
        t["topk_threshold"] = np.array(0.7)
        cfg["rescale_acts_by_decoder_norm"] = False
        f = relu(h) * (h > np.float32(0.7))
    elif architecture == "rescaled_batchtopk":
        # A checkpoint of SAELens's trainer: its class counts h times the decoder's lengths unless told otherwise.
        cfg["architecture"] = "batchtopk"
        t["topk_threshold"] = np.array(0.7)
        length = np.linalg.norm(D, axis=1)
        f = relu(h * length) * (h * length > np.float32(0.7))
        D = D / length[:, None]
    elif architecture == "topk":
        cfg["k"] = k
        f = relu(top(h, k))
    elif architecture == "rescaled_topk":
        cfg.update(architecture="topk", k=k, rescale_acts_by_decoder_norm=True)
        length = np.linalg.norm(D, axis=1)
        f = relu(top(h * length, k))
        D = D / length[:, None]
    elif architecture == "gated":
        t.pop("b_enc")
        t.update(b_gate=f32(F), b_mag=f32(F), r_mag=f32(F, scale=0.3))
        f = (v @ W + t["b_gate"] > 0) * relu(v @ (W * np.exp(t["r_mag"].astype(float))) + t["b_mag"])
    elif architecture == "old_topk":
        cfg = {"d_in": d, "d_sae": F, "hook_point": "blocks.4.hook_resid_pre", "activation_fn_str": "topk",
               "activation_fn_kwargs": {"k": k}, "apply_b_dec_to_input": subtract, "normalize_activations": False,
               "model_name": "toy", "prepend_bos": True}
        f = relu(top(h, k))
    elif architecture == "old_factor":
        cfg = {"d_in": d, "d_sae": F, "hook_name": "blocks.3.hook_resid_post", "activation_fn_str": "relu",
               "apply_b_dec_to_input": subtract, "sae_lens_version": "4.0.1", "model_name": "toy"}
        t["scaling_factor"] = 1 + np.abs(f32(F))
        f = relu(h)
        D = D * t["scaling_factor"][:, None]
    else:
        f = relu(h)
    y = undo(f @ D + t["b_dec"])
    path = place("saelens-" + architecture)
    write_json(os.path.join(path, "cfg.json"), cfg)
    save_safetensors(os.path.join(path, "sae_weights.safetensors"), t)
    case("SAELens " + architecture, path, x, f, y, layer=3)

# Gemma Scope 1 and 2: JumpReLU, nothing taken from the input.
for version in [1, 2]:
    d, F, n = sizes()
    x = f32(n, d, scale=3)
    W, D, b, c, th = f32(d, F), f32(F, d), f32(F), f32(d), np.abs(f32(F))
    h = x.astype(float) @ W + b
    f = relu(h) * (h > th)
    path = place(f"gemma-{version}")
    if version == 1:
        np.savez(os.path.join(path, "params.npz"), W_enc=W, W_dec=D, b_enc=b, b_dec=c, threshold=th)
        case("Gemma Scope", path, x, f, f @ D.astype(float) + c, claim=5, layer=5)
    else:
        save_safetensors(os.path.join(path, "params.safetensors"),
                         {"w_enc": W, "w_dec": D, "b_enc": b, "b_dec": c, "threshold": th})
        write_json(os.path.join(path, "config.json"),
                   {"architecture": "jump_relu", "model_name": "google/gemma-3-1b-pt",
                    "hf_hook_point_in": "model.layers.7.output", "hf_hook_point_out": "model.layers.7.output"})
        case("Gemma Scope 2", path, x, f, f @ D.astype(float) + c, layer=7)

# Llama Scope: its publisher's loader, step by step.
d, F, n = sizes()
x = f32(n, d, scale=3)
E, eb, W, wb = f32(F, d), f32(F), f32(d, F), f32(d)
into, out, th = 5.5, 6.5, 0.9
s, t = np.sqrt(d) / into, np.sqrt(d) / out
e, bias, w, dbias = E.astype(float), eb / s, W * (s / t), wb / t
length = np.linalg.norm(w, axis=0)
e, bias, w = e * length[:, None], bias * length, w / length
h = x.astype(float) @ e.T + bias
f = h * (h > th)
path = place("llama-scope")
os.makedirs(os.path.join(path, "checkpoints"))
save_safetensors(os.path.join(path, "checkpoints", "final.safetensors"),
                 {"encoder.weight": E, "encoder.bias": eb, "decoder.weight": W, "decoder.bias": wb})
write_json(os.path.join(path, "hyperparams.json"),
           {"hook_point_in": "blocks.3.hook_resid_post", "hook_point_out": "blocks.3.hook_resid_post",
            "act_fn": "jumprelu", "jump_relu_threshold": th, "apply_decoder_bias_to_pre_encoder": False,
            "dataset_average_activation_norm": {"in": into, "out": out}})
case("Llama Scope", path, x, f, f @ w.T + dbias, layer=3)

# Other points of a block, by the hooks that publishers write.
for number, (hook, layer, point) in enumerate([
        ("blocks.3.hook_attn_out", 3, "attn_out"), ("blocks.3.hook_mlp_out", 3, "ffn_out"),
        ("blocks.4.hook_resid_mid", 4, "mid"), ("blocks.0.hook_resid_pre", 0, "block_in"),
        ("blocks.2.hook_resid_pre", 1, "block_out")]):
    d, F, n = sizes()
    x = f32(n, d, scale=3)
    W, D, b, c = f32(d, F), f32(F, d), f32(F), f32(d)
    f = relu((x.astype(float) - c) @ W + b)
    path = place(f"point-{number}")
    save_safetensors(os.path.join(path, "sae_weights.safetensors"), {"W_enc": W, "W_dec": D, "b_enc": b, "b_dec": c})
    write_json(os.path.join(path, "cfg.json"),
               {"architecture": "standard", "metadata": {"model_name": "toy", "hook_name": hook}})
    case("SAELens at " + hook, path, x, f, f @ D.astype(float) + c, layer=layer, point=point)

# sparsify: the k largest of relu(h), b_dec taken from the input.
d, F, n = sizes()
x = f32(n, d, scale=3)
E, eb, D, c = f32(F, d), f32(F), f32(F, d), f32(d)
k = int(rng.integers(1, F + 1))
f = top(relu((x.astype(float) - c) @ E.T.astype(float) + eb), k)
path = place("sparsify")
save_safetensors(os.path.join(path, "sae.safetensors"), {"encoder.weight": E, "encoder.bias": eb, "W_dec": D, "b_dec": c})
write_json(os.path.join(path, "cfg.json"), {"d_in": d, "activation": "topk", "expansion_factor": 32, "num_latents": F,
                                            "k": k, "transcode": False, "skip_connection": False})
case("sparsify", path, x, f, f @ D.astype(float) + c, claim=2, layer=2)

# The Lab's own, on (x - mean) / scale.
d, F, n = sizes()
x = f32(n, d, scale=3)
E, eb, W, wb = f32(F, d), f32(F), f32(d, F), f32(d)
mean, scale = f32(d), 2.5
z = (x.astype(float) - mean) / scale
f = relu(z @ E.T.astype(float) + eb)
path = place("lab")
save_safetensors(os.path.join(path, "sae-layer-6.safetensors"),
                 {"encoder.weight": E, "encoder.bias": eb, "decoder.weight": W, "decoder.bias": wb},
                 {"layer": "6", "architecture": "relu"})
np.savez(os.path.join(path, "sae-normalization-6.npz"), mean=mean, scale=np.float64(scale))
case("Lab", path, x, f, (f @ W.T.astype(float) + wb) * scale + mean, layer=6)

# Transcoders: they predict another point, so b_dec is never taken from the input, and nothing is scaled back.
def transcoder():
    d, F, n = sizes()
    return d, F, f32(n, d, scale=3), f32(d, F), f32(F, d), f32(F), f32(d), f32(d, d)


for architecture in ["transcoder", "skip_transcoder", "jumprelu_transcoder", "jumprelu_skip_transcoder"]:
    d, F, x, W, D, b, c, S = transcoder()
    t = {"W_enc": W, "W_dec": D, "b_enc": b, "b_dec": c}
    h = x.astype(float) @ W + b
    f = relu(h)
    if "jumprelu" in architecture:
        t["threshold"] = np.abs(f32(F))
        f = relu(h) * (h > t["threshold"])
    y = f @ D.astype(float) + c
    if "skip" in architecture:
        t["W_skip"] = S
        y = y + x @ S.T.astype(float)
    path = place("saelens-" + architecture)
    save_safetensors(os.path.join(path, "sae_weights.safetensors"), t)
    write_json(os.path.join(path, "cfg.json"),
               {"architecture": architecture, "d_in": d, "d_out": d, "d_sae": F, "apply_b_dec_to_input": True,
                "metadata": {"model_name": "toy", "hook_name": "blocks.3.mlp.hook_in",
                             "hook_name_out": "blocks.3.hook_mlp_out", "sae_lens_version": "6.54.0"}})
    case("SAELens " + architecture, path, x, f, y, layer=3, point="ffn_in", writes="ffn_out")

# The hook before the norm's weight: the stream over its root mean square.
d, F, x, W, D, b, c, S = transcoder()
normalised = x / np.sqrt((x.astype(float) ** 2).mean(axis=1, keepdims=True))
f = relu(normalised @ W + b)
path = place("saelens-normalized")
save_safetensors(os.path.join(path, "sae_weights.safetensors"), {"W_enc": W, "W_dec": D, "b_enc": b, "b_dec": c})
write_json(os.path.join(path, "cfg.json"),
           {"architecture": "transcoder", "metadata": {"hook_name": "blocks.4.ln2.hook_normalized",
                                                       "hook_name_out": "blocks.4.hook_mlp_out"}})
case("SAELens at hook_normalized", path, x, f, f @ D.astype(float) + c, layer=4, point="mid", writes="ffn_out")

# Gemma Scope 2 multiplies rows with its skip connection, untransposed.
for affine in [False, True]:
    d, F, x, W, D, b, c, S = transcoder()
    th = np.abs(f32(F))
    h = x.astype(float) @ W + b
    f = relu(h) * (h > th)
    t = {"w_enc": W, "w_dec": D, "b_enc": b, "b_dec": c, "threshold": th}
    if affine:
        t["affine_skip_connection"] = S
    path = place(f"gemma-2-transcoder-{affine}")
    save_safetensors(os.path.join(path, "params.safetensors"), t)
    write_json(os.path.join(path, "config.json"),
               {"architecture": "jump_relu", "model_name": "google/gemma-3-1b-pt",
                "hf_hook_point_in": "model.layers.7.pre_feedforward_layernorm.output",
                "hf_hook_point_out": "model.layers.7.post_feedforward_layernorm.output"})
    y = f @ D.astype(float) + c + (x @ S.astype(float) if affine else 0)
    case(f"Gemma Scope 2, transcoder, {affine}", path, x, f, y, layer=7, point="ffn_in", writes="ffn_out")

# sparsify's of an MLP: its module's input and output, k largest of relu(h).
d, F, x, W, D, b, c, S = transcoder()
k = int(rng.integers(1, F + 1))
f = top(relu(x.astype(float) @ W + b), k)
path = place("sparsify-transcoder")
save_safetensors(os.path.join(path, "sae.safetensors"),
                 {"encoder.weight": np.ascontiguousarray(W.T), "encoder.bias": b, "W_dec": D, "b_dec": c, "W_skip": S})
write_json(os.path.join(path, "cfg.json"), {"d_in": d, "activation": "topk", "num_latents": F, "k": k,
                                            "transcode": True, "skip_connection": True})
case("sparsify, transcoder", path, x, f, f @ D.astype(float) + c + x @ S.T.astype(float), claim=2, layer=2,
     point="ffn_in", writes="ffn_out")

# circuit-tracer's sets: both matrices [F, d]; its TopK keeps negative values.
for activation in ["relu", "jumprelu", "topk"]:
    d, F, x, W, D, b, c, S = transcoder()
    k = int(rng.integers(1, F + 1))
    h = x.astype(float) @ W + b
    t = {"W_enc": np.ascontiguousarray(W.T), "W_dec": D, "b_enc": b, "b_dec": c, "W_skip": S}
    if activation == "jumprelu":
        t["activation_function.threshold"] = np.abs(f32(F))
        f = h * (h > t["activation_function.threshold"])
    else:
        f = relu(h) if activation == "relu" else top(h, k)
    path = place("circuit-tracer-" + activation)
    with open(os.path.join(path, "config.yaml"), "w") as file:
        file.write('model_name: "toy"\nmodel_kind: transcoder_set  # per layer\nfeature_input_hook: mlp.hook_in\n'
                   f"feature_output_hook: 'hook_mlp_out'\nactivation: {activation}\nk: {k}\ntranscoders:\n  - a\n")
    save_safetensors(os.path.join(path, "layer_6.safetensors"), t)
    case("circuit-tracer " + activation, path, x, f, f @ D.astype(float) + c + x @ S.T.astype(float), layer=6,
         point="ffn_in", writes="ffn_out")

print_case()
