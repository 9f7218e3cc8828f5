"""The smallest networks of each library, built without weights and saved where a user would have them."""

import json

import torch
from safetensors.torch import save_file

TINY_CLIP = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 16, "layers": 1, "width": 16, "head_width": 8, "patch_size": 8},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
}


def hf_folder(path, classes=4, safe=True):
    """A folder as ``save_pretrained`` writes it: a vision transformer for 16 px."""
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=16,
        patch_size=8,
        num_labels=classes,
    )
    model = ViTForImageClassification(config)
    model.save_pretrained(path)
    ViTImageProcessor(size={"height": 16, "width": 16}).save_pretrained(path)
    if not safe:
        (path / "model.safetensors").unlink()
        torch.save(model.state_dict(), path / "pytorch_model.bin")
    return model


def clip_architecture(folder):
    """The name of a small CLIP that open_clip knows from now on."""
    import open_clip

    (folder / "tiny-clip.json").write_text(json.dumps(TINY_CLIP))
    open_clip.add_model_config(folder / "tiny-clip.json")
    return "tiny-clip"


def clip_weights(folder):
    """A file of weights for it, from one seed."""
    import open_clip

    torch.manual_seed(0)
    model = open_clip.create_model(clip_architecture(folder))
    save_file(model.state_dict(), folder / "clip.safetensors")
    return folder / "clip.safetensors"
