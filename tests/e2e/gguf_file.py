"""Writes a small llama GGUF, enough for `ingle import`."""

import struct

UINT32, FLOAT32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
F32 = 0
ALIGNMENT = 32

HIDDEN, HEADS, LAYERS, MLP = 64, 4, 2, 128


def _string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value):
    if isinstance(value, bool):
        return BOOL, struct.pack("<?", value)
    if isinstance(value, int):
        return UINT32, struct.pack("<I", value)
    if isinstance(value, float):
        return FLOAT32, struct.pack("<f", value)
    if isinstance(value, str):
        return STRING, _string(value)
    items = [_value(item) for item in value]
    head = struct.pack("<IQ", items[0][0], len(items))
    return ARRAY, head + b"".join(data for _, data in items)


def _byte_pieces():
    """The 256 bytes as byte-level BPE spells them."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    spelling = {byte: chr(byte) for byte in shown}
    spelling |= {byte: chr(256 + i) for i, byte in enumerate(hidden)}
    return [spelling[byte] for byte in range(256)]


def _metadata():
    pieces = [*_byte_pieces(), "ab", "<|im_start|>", "<|im_end|>"]
    return {
        "general.architecture": "llama",
        "general.name": "small",
        "llama.block_count": LAYERS,
        "llama.context_length": 256,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": MLP,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.freq_base": 10000.0,
        "llama.rope.dimension_count": HIDDEN // HEADS,
        "llama.vocab_size": len(pieces),
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": pieces,
        "tokenizer.ggml.token_type": [1] * 257 + [3, 3],
        "tokenizer.ggml.merges": ["a b"],
        "tokenizer.ggml.bos_token_id": 257,
        "tokenizer.ggml.eos_token_id": 258,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": "{{ messages[0]['content'] }}",
    }


def _shapes(vocab):
    """Rows and columns of each tensor; norms have columns alone."""
    yield "token_embd.weight", (vocab, HIDDEN)
    yield "output_norm.weight", (HIDDEN,)
    for layer in range(LAYERS):
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{layer}.{part}.weight", (HIDDEN, HIDDEN)
        yield f"blk.{layer}.ffn_gate.weight", (MLP, HIDDEN)
        yield f"blk.{layer}.ffn_up.weight", (MLP, HIDDEN)
        yield f"blk.{layer}.ffn_down.weight", (HIDDEN, MLP)
        yield f"blk.{layer}.attn_norm.weight", (HIDDEN,)
        yield f"blk.{layer}.ffn_norm.weight", (HIDDEN,)


def write_gguf(path):
    """About 0.5 MB of f32 tensors, all ones."""
    metadata = _metadata()
    vocab = len(metadata["tokenizer.ggml.tokens"])
    shapes = dict(_shapes(vocab))
    header = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(metadata))
    for key, value in metadata.items():
        kind, data = _value(value)
        header += _string(key) + struct.pack("<I", kind) + data
    body = b""
    for name, shape in shapes.items():
        header += _string(name) + struct.pack("<I", len(shape))
        for size in reversed(shape):
            header += struct.pack("<Q", size)
        header += struct.pack("<IQ", F32, len(body))
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        body += struct.pack("<f", 1.0) * count
        body += bytes(-len(body) % ALIGNMENT)
    header += bytes(-len(header) % ALIGNMENT)
    path.write_bytes(header + body)
