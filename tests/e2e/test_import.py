"""`ingle import`: whole, or nothing and one clear line."""

import json
import subprocess

import pytest

import ingle_process
import model_folder
from gguf_file import write_gguf


@pytest.fixture
def gguf(tmp_path):
    path = tmp_path / "small.gguf"
    write_gguf(path)
    return path


def test_import_makes_a_model_that_generates(binary, gguf, tmp_path):
    out = tmp_path / "small"
    done = ingle_process.run("import", gguf, "--out", out)
    assert done.returncode == 0, done.stderr
    names = {file.name for file in out.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    answer = ingle_process.generate(
        out, "--prompt", "abc", "--max-tokens", 2, "--ignore-eos"
    )
    assert len(answer["ids"]) == 2


@pytest.mark.parametrize("kept", [0, 3, 23, 500, 6000, 200_000, -1])
def test_truncated_file_leaves_nothing(binary, gguf, tmp_path, kept):
    short = tmp_path / "short.gguf"
    short.write_bytes(gguf.read_bytes()[:kept])
    home = tmp_path / "home"
    home.mkdir()
    done = ingle_process.run("import", short, "--out", home / "out")
    assert done.returncode > 0, f"{done.returncode}: {done.stderr}"
    assert "short.gguf" in done.stderr.strip().splitlines()[-1]
    assert list(home.iterdir()) == []


def test_existing_output_is_not_touched(binary, gguf, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine").write_text("kept")
    done = ingle_process.run("import", gguf, "--out", out)
    assert done.returncode > 0
    assert str(out) in done.stderr
    assert (out / "mine").read_text() == "kept"


# In a mount namespace of its own: nothing to clean up, and no root needed
# where the kernel lets users have one.
ON_A_SMALL_DISK = """
mount -t tmpfs -o "$4" none "$1" || exit 77
"$2" import "$3" --out "$1/out"
echo "code $?"
ls -A "$1"
"""


# Too small from the start; and full after some files, which free blocks do not
# foretell.
@pytest.mark.parametrize("options", ["size=128k", "size=8m,nr_inodes=4"])
def test_full_disk_leaves_nothing(binary, gguf, tmp_path, options):
    disk = tmp_path / "disk"
    disk.mkdir()
    try:
        done = subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-c"]
            + [ON_A_SMALL_DISK, "sh", disk, binary, gguf, options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("no unshare on this machine")
    if "code" not in done.stdout:
        pytest.skip(f"no small disk to be had here: {done.stderr.strip()}")
    *_, code = done.stdout.splitlines()  # the last line unless ls found any
    assert code.startswith("code "), f"left behind: {done.stdout}"
    assert code not in ("code 0", "code 134", "code 139")
    line = done.stderr.strip().splitlines()[-1]
    assert str(disk) in line
    assert "free" in line or "space" in line


@pytest.fixture
def plain_folder(binary, gguf, tmp_path):
    """A folder of f32 weights, as Hugging Face has it."""
    folder = tmp_path / "plain"
    done = ingle_process.run("import", gguf, "--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_folder_is_quantised_and_generates(plain_folder, tmp_path):
    out = tmp_path / "small-4bit"
    done = ingle_process.run(
        "import", "--bits", 4, "--group-size", 32, plain_folder, "--out", out
    )
    assert done.returncode == 0, done.stderr
    assert "4 bits, groups of 32, F32 scales" in done.stdout
    assert str(out) in done.stdout
    config = json.loads((out / "config.json").read_text())
    assert config["quantization"]["bits"] == 4
    before, after = (
        (folder / "model.safetensors").stat().st_size
        for folder in (plain_folder, out)
    )
    assert after < before / 3
    answer = ingle_process.generate(
        out, "--prompt", "abc", "--max-tokens", 2, "--ignore-eos"
    )
    assert len(answer["ids"]) == 2
    again = ingle_process.run("import", out, "--out", tmp_path / "twice")
    assert again.returncode > 0
    assert "quantised already" in again.stderr
    assert not (tmp_path / "twice").exists()


def test_folder_of_another_architecture_is_refused(plain_folder, tmp_path):
    model_folder.edit_json(
        plain_folder, "config.json", lambda c: c.update(model_type="mamba")
    )
    done = ingle_process.run("import", plain_folder, "--out", tmp_path / "out")
    assert done.returncode > 0
    assert "model_type 'mamba' is not supported" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_gguf_keeps_its_types(binary, gguf, tmp_path):
    done = ingle_process.run("import", "--bits", 4, gguf, "--out", tmp_path / "o")
    assert done.returncode > 0
    assert "--bits" in done.stderr
