"""What a GGUF says of a model, read by the `gguf` package."""

import gguf


class GgufModel:
    def __init__(self, path, architecture):
        self.reader = gguf.GGUFReader(path)
        if self.field("general.architecture") != architecture:
            raise ValueError(f"{path}: not a {architecture} GGUF")

    def field(self, name):
        return self.reader.fields[name].contents()


def hf_name(name, parts):
    """A tensor's name in Hugging Face's files; `parts`: of a layer."""
    if name == "token_embd.weight":
        return "model.embed_tokens.weight"
    if name == "output_norm.weight":
        return "model.norm.weight"
    if name == "output.weight":
        return "lm_head.weight"
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{parts[part]}.{kind}"
