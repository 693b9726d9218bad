"""Copies of a model folder, most of it links, to be broken by tests."""

import json


def link_model(model, folder, without=()):
    """`folder` with a link to each file of `model` but those."""
    folder.mkdir()
    for file in model.iterdir():
        if file.name not in without:
            (folder / file.name).symlink_to(file)
    return folder


def replace(folder, name, content):
    """Puts a file of its own in the place of the link."""
    path = folder / name
    path.unlink(missing_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content)


def edit_json(folder, name, change):
    """Replaces a JSON file by what `change` makes of its content."""
    content = json.loads((folder / name).read_text())
    change(content)
    replace(folder, name, json.dumps(content))
