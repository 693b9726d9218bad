"""A llama GGUF in mlx-lm, f32, without ingle's importer.

Dequantised by the `gguf` package, so that a golden made from it holds the
importer and the model code at once.
"""

import gguf
import jinja2
import mlx.core as mx
import numpy as np
import tokenizers
from mlx_lm.models.llama import Model, ModelArgs

from gguf_model import GgufModel, hf_name

NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


class GgufLlama(GgufModel):
    def __init__(self, path):
        super().__init__(path, "llama")

    def model(self):
        heads = self.field("llama.attention.head_count")
        kv_heads = self.field("llama.attention.head_count_kv")
        weights = {}
        for tensor in self.reader.tensors:
            value = gguf.dequantize(tensor.data, tensor.tensor_type)
            if ".attn_q." in tensor.name:
                value = unpermute(value, heads)
            elif ".attn_k." in tensor.name:
                value = unpermute(value, kv_heads)
            value = value.astype(np.float32)
            weights[hf_name(tensor.name, NAMES)] = mx.array(value)
        model = Model(
            ModelArgs(
                model_type="llama",
                hidden_size=self.field("llama.embedding_length"),
                num_hidden_layers=self.field("llama.block_count"),
                intermediate_size=self.field("llama.feed_forward_length"),
                num_attention_heads=heads,
                num_key_value_heads=kv_heads,
                rms_norm_eps=self.field(
                    "llama.attention.layer_norm_rms_epsilon"
                ),
                vocab_size=self.field("llama.vocab_size"),
                rope_theta=self.field("llama.rope.freq_base"),
                tie_word_embeddings="lm_head.weight" not in weights,
            )
        )
        model.load_weights(list(weights.items()), strict=True)
        mx.eval(model.parameters())
        return model

    def tokenizer(self):
        """Byte-level BPE with the digits split one by one ("smollm")."""
        if self.field("tokenizer.ggml.pre") != "smollm":
            raise ValueError("only the pre-tokenizer 'smollm' is known here")
        pieces = self.field("tokenizer.ggml.tokens")
        merges = [
            tuple(merge.split(" "))
            for merge in self.field("tokenizer.ggml.merges")
        ]
        vocab = {piece: i for i, piece in enumerate(pieces)}
        result = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, merges))
        split = tokenizers.pre_tokenizers
        result.pre_tokenizer = split.Sequence(
            [
                split.Digits(individual_digits=True),
                split.ByteLevel(add_prefix_space=False),
            ]
        )
        result.decoder = tokenizers.decoders.ByteLevel()
        types = self.field("tokenizer.ggml.token_type")
        control = gguf.TokenType.CONTROL
        result.add_special_tokens(
            [p for p, kind in zip(pieces, types) if kind == control]
        )
        return result

    def chat_template(self):
        return self.field("tokenizer.chat_template")


def render(template, messages):
    """The prompt, as Hugging Face's templates are rendered."""
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        messages=messages, add_generation_prompt=True
    )


def unpermute(rows, heads):
    """Row (head, 2j + p) goes to (head, p * head_dim / 2 + j)."""
    pairs = rows.reshape(heads, -1, 2, rows.shape[1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)
