"""A gemma3 GGUF in mlx-lm, f32, and its tokenizer in sentencepiece, without
ingle's importer.

Dequantised by the `gguf` package, so that a golden made from it holds the
importer and the model code at once.
"""

import gguf
import mlx.core as mx
import numpy as np
import sentencepiece
from mlx_lm.models.gemma3_text import Model, ModelArgs
from sentencepiece import sentencepiece_model_pb2

from gguf_model import GgufModel, hf_name

NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_output": "self_attn.o_proj",
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "post_ffw_norm": "post_feedforward_layernorm",
}
# What sentencepiece calls them, and GGUF.
SPECIAL = {"unk": "unknown", "bos": "bos", "eos": "eos", "pad": "padding"}
GROUP = 32


class GgufGemma3(GgufModel):
    def __init__(self, path):
        super().__init__(path, "gemma3")

    def model(self, requantise=True):
        """With `requantise` a type that MLX has no form for is at 8 bits, as
        docs/formats/gguf-import.md says; without, all is as in the file."""
        weights = {}
        for tensor in self.reader.tensors:
            value = gguf.dequantize(tensor.data, tensor.tensor_type)
            value = value.astype(np.float32)
            if tensor.name.endswith("norm.weight"):
                value = value - np.float32(1)
            elif requantise and tensor.tensor_type.name == "Q6_K":
                value = requantised(value)
            weights[hf_name(tensor.name, NAMES)] = mx.array(value)
        model = Model(
            ModelArgs(
                model_type="gemma3_text",
                hidden_size=self.field("gemma3.embedding_length"),
                num_hidden_layers=self.field("gemma3.block_count"),
                intermediate_size=self.field("gemma3.feed_forward_length"),
                num_attention_heads=self.field("gemma3.attention.head_count"),
                num_key_value_heads=self.field(
                    "gemma3.attention.head_count_kv"
                ),
                head_dim=self.field("gemma3.attention.key_length"),
                rms_norm_eps=self.field(
                    "gemma3.attention.layer_norm_rms_epsilon"
                ),
                vocab_size=len(self.field("tokenizer.ggml.tokens")),
                rope_theta=self.field("gemma3.rope.freq_base"),
                sliding_window=self.field("gemma3.attention.sliding_window"),
            )
        )
        model.load_weights(
            list(model.sanitize(weights).items()), strict=True
        )
        mx.eval(model.parameters())
        return model

    def tokenizer(self):
        """SentencePiece's own model of the same pieces. Control tokens are no
        part of a text there."""
        proto = sentencepiece_model_pb2.ModelProto()
        texts = self.field("tokenizer.ggml.tokens")
        scores = self.field("tokenizer.ggml.scores")
        kinds = self.field("tokenizer.ggml.token_type")
        unknown = self.field("tokenizer.ggml.unknown_token_id")
        for text, score, kind in zip(texts, scores, kinds):
            if len(proto.pieces) == unknown:
                kind = gguf.TokenType.UNKNOWN
            if kind == gguf.TokenType.USER_DEFINED:
                # Spaces are marked, also there.
                text = text.replace(" ", "\u2581")
            proto.pieces.add(piece=text, score=score, type=int(kind))
        trainer = proto.trainer_spec
        trainer.model_type = trainer.BPE
        trainer.byte_fallback = True
        for name, key in SPECIAL.items():
            token = self.field(f"tokenizer.ggml.{key}_token_id")
            setattr(trainer, f"{name}_id", token)
            setattr(trainer, f"{name}_piece", texts[token])
        proto.normalizer_spec.name = "identity"
        proto.normalizer_spec.add_dummy_prefix = False
        proto.normalizer_spec.remove_extra_whitespaces = False
        return sentencepiece.SentencePieceProcessor(
            model_proto=proto.SerializeToString()
        )


def requantised(value):
    """At 8 bits in groups, between the least and the largest of each."""
    groups = value.reshape(-1, GROUP)
    low = groups.min(axis=1, keepdims=True)
    scale = (groups.max(axis=1, keepdims=True) - low) / np.float32(255)
    steps = (groups - low) / np.where(scale > 0, scale, 1)
    return (scale * np.floor(steps + 0.5) + low).reshape(value.shape)
