"""`ingle get ORG/NAME` and what becomes of it, against a hub that misbehaves."""

import json
import os
import pty
import re
import signal
import subprocess
import threading
import time
import urllib.request

import pytest

import ingle_process
from gguf_file import write_gguf
from hub_server import COMMIT, PIECE, REPO, Hub, etag_of

WEIGHTS = "model.safetensors"
FILE = f"/{REPO}/resolve/{COMMIT}/{WEIGHTS}"
LIST = f"/api/models/{REPO}/revision/main"


@pytest.fixture(scope="module")
def model_files(binary, tmp_path_factory):
    """The files of a small model, by name."""
    folder = tmp_path_factory.mktemp("small")
    write_gguf(folder / "small.gguf")
    done = ingle_process.run(
        "import", folder / "small.gguf", "--out", folder / "model"
    )
    assert done.returncode == 0, done.stderr
    return {f.name: f.read_bytes() for f in (folder / "model").iterdir()}


@pytest.fixture
def hub(model_files):
    hub = Hub(model_files | {"README.md": b"not needed"})
    yield hub
    hub.close()


class Cache:
    def __init__(self, folder, hub):
        self.folder = folder / "hub"
        self.repo = self.folder / "models--org--tiny"
        self.blobs = self.repo / "blobs"
        self.snapshot = self.repo / "snapshots" / hub.commit
        self.variables = {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(folder),
            "HF_HUB_CACHE": str(self.folder),
            "HF_TOKEN": "",
            "HF_TOKEN_PATH": "",
            "INGLE_HOME": str(folder / "ingle"),
            "no_proxy": "*",
        }

    def run(self, *arguments, **variables):
        return ingle_process.run(
            *arguments, variables=self.variables | variables
        )

    def get(self, **variables):
        return self.run("get", REPO, **variables)

    def parts(self):
        return list(self.blobs.glob("*.ingle-part"))

    def expect_whole(self, hub):
        kept = {f.name for f in self.snapshot.iterdir()}
        assert kept == set(hub.files) - {"README.md"}
        for file in self.snapshot.iterdir():
            content = hub.files[file.name]
            target = f"../../blobs/{etag_of(file.name, content)}"
            assert os.readlink(file) == target
            assert file.read_bytes() == content
        assert (self.repo / "refs" / "main").read_text() == hub.commit
        assert self.parts() == []


@pytest.fixture
def cache(hub, tmp_path):
    return Cache(tmp_path, hub)


def error_of(done):
    """The one line that a failed command says."""
    assert done.returncode > 0, (done.returncode, done.stderr)
    assert done.stdout == ""
    line = done.stderr.splitlines()[-1]
    assert line.startswith("ingle: ")
    return line


def test_model_of_a_hub_is_fetched_and_answers(hub, cache):
    done = cache.get()
    assert (done.returncode, done.stderr) == (0, "")
    assert str(cache.snapshot) in done.stdout
    cache.expect_whole(hub)
    assert not list((cache.folder / ".locks").rglob("ingle.lock"))

    again = cache.run("get", REPO, "--json")
    out = json.loads(again.stdout)
    assert out["folder"] == str(cache.snapshot)
    assert out["fetched_bytes"] == 0
    assert len(hub.asked("cdn")) == 1

    for model in (REPO, "tiny", cache.snapshot):
        answer = cache.run(
            *("generate", "--model", model, "--prompt", "abc", "--json"),
            *("--max-tokens", 2, "--ignore-eos"),
        )
        assert answer.returncode == 0, answer.stderr
        assert len(json.loads(answer.stdout)["ids"]) == 2


def test_server_calls_a_model_by_its_name_on_the_hub(hub, cache, start_server):
    assert cache.get().returncode == 0
    server = start_server(model="tiny", variables=cache.variables)
    with server.post("/v1/completions", {"prompt": "abc", "max_tokens": 1}) as r:
        assert json.load(r)["model"] == REPO
    with urllib.request.urlopen(f"{server.url}/v1/models/{REPO}") as r:
        assert json.load(r)["id"] == REPO


def test_download_resume_range(hub, cache):
    half = len(hub.files[WEIGHTS]) // 2
    hub.cuts = [half, 0, 0, 0]
    line = error_of(cache.get())
    assert WEIGHTS in line
    assert "are kept, the same command goes on" in line
    assert [part.stat().st_size for part in cache.parts()] == [half]
    assert not (cache.repo / "refs" / "main").exists()

    hub.requests.clear()
    assert cache.get().returncode == 0
    cache.expect_whole(hub)
    [(_, headers)] = hub.asked("cdn")
    assert headers["Range"] == f"bytes={half}-"


def test_cut_connection_is_gone_on_with_at_once(hub, cache):
    hub.cuts = [10_000]
    done = cache.get()
    assert done.returncode == 0, done.stderr
    assert "trying again" in done.stderr
    cache.expect_whole(hub)
    assert [h.get("Range") for _, h in hub.asked("cdn")] == [
        None,
        "bytes=10000-",
    ]


def test_range_that_is_ignored_starts_the_file_again(hub, cache):
    hub.cuts = [10_000]
    hub.ignores_ranges = True
    assert cache.get().returncode == 0
    cache.expect_whole(hub)


def test_checksum_mismatch_removes(hub, cache):
    hub.damage = lambda body: body[:-1] + bytes([body[-1] ^ 1])
    line = error_of(cache.get())
    assert WEIGHTS in line and "hash" in line and "run it again" in line
    assert cache.parts() == []
    assert not (cache.repo / "refs" / "main").exists()

    hub.damage = lambda body: body
    assert cache.get().returncode == 0
    cache.expect_whole(hub)


@pytest.mark.parametrize("source", ["variable", "file"])
def test_auth_not_sent_to_cdn(hub, cache, tmp_path, source):
    (tmp_path / "token").write_text("hf_secret\n")
    variables = (
        {"HF_TOKEN": "hf_secret"}
        if source == "variable"
        else {"HF_TOKEN_PATH": str(tmp_path / "token")}
    )
    done = cache.get(**variables)
    assert done.returncode == 0, done.stderr
    sent = {
        host: {
            headers.get("Authorization")
            for where, _, _, headers in hub.requests
            if where == host
        }
        for host in ("hub", "cdn")
    }
    assert sent == {"hub": {"Bearer hf_secret"}, "cdn": {None}}
    assert "hf_secret" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "status, code, said",
    [
        (401, "", "HF_TOKEN"),
        (403, "GatedRepo", "accept its terms at"),
        (404, "RepoNotFound", f"has no model {REPO}"),
        (404, "RevisionNotFound", "no revision 'main'"),
        (429, "", "takes no more requests"),
        (418, "", "418"),
    ],
)
def test_refusal_says_what_to_do(hub, cache, status, code, said):
    fields = {"X-Error-Code": code, "Retry-After": "1000"}
    hub.refusals[LIST] = [(status, fields)]
    assert said in error_of(cache.get())
    assert not cache.folder.exists()


def test_file_that_is_gated_says_so(hub, cache):
    hub.refusals[FILE] = [(403, {"X-Error-Code": "GatedRepo"})]
    assert "gated" in error_of(cache.get())


def test_too_many_requests_are_waited_for(hub, cache):
    hub.refusals[LIST] = [(429, {"Retry-After": "1"}), (503, {})]
    started = time.monotonic()
    done = cache.get()
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - started > 2
    cache.expect_whole(hub)


@pytest.mark.parametrize(
    "name", ["../../evil.safetensors", "/tmp/evil.safetensors", "a\x1b[2J"]
)
def test_hostile_name_is_refused(hub, cache, name):
    hub.files.pop(WEIGHTS)
    hub.listed = [n for n in hub.listed if n != WEIGHTS] + [
        "model.safetensors.index.json",
        name,
    ]
    hub.files["model.safetensors.index.json"] = json.dumps(
        {"weight_map": {"weight": name}}
    ).encode()
    line = error_of(cache.get())
    assert "model.safetensors.index.json" in line and "\x1b" not in line
    assert not cache.folder.exists()


def test_file_larger_than_the_disk_is_told_before_it_is_fetched(hub, cache):
    hub.sizes[WEIGHTS] = 1 << 60
    line = error_of(cache.get())
    assert "free" in line and REPO in line
    assert hub.asked("cdn") == []


def test_file_that_is_longer_than_it_said_is_refused(hub, cache):
    hub.sizes[WEIGHTS] = 1000
    assert WEIGHTS in error_of(cache.get())
    assert cache.parts() == []


# In a mount namespace of its own, as in test_import.py.
ON_A_SMALL_DISK = """
mount -t tmpfs -o "$4" none "$1" || exit 77
"$2" get "$3"
echo "code $?"
mount -t tmpfs -o remount,size=64m,nr_inodes=1000 none "$1"
"$2" get "$3" >&2
echo "code $?"
"""


# Too small from the start; and full after some files, which free blocks do not
# foretell.
@pytest.mark.parametrize("options", ["size=128k", "size=64m,nr_inodes=11"])
def test_full_disk_keeps_what_came(hub, cache, options):
    disk = cache.folder
    disk.mkdir(parents=True)
    try:
        done = subprocess.run(
            ["unshare", "--map-root-user", "--mount", "sh", "-c"]
            + [ON_A_SMALL_DISK, "sh", disk, ingle_process.BINARY, REPO]
            + [options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env=ingle_process.ENVIRONMENT | cache.variables,
        )
    except FileNotFoundError:
        pytest.skip("no unshare on this machine")
    if "code" not in done.stdout:
        pytest.skip(f"no small disk to be had here: {done.stderr.strip()}")
    assert done.stdout.splitlines() == ["code 1", "code 0"], done.stderr
    line = done.stderr.splitlines()[0]
    if "nr_inodes" in options:
        assert "No space left" in line and "are kept" in line
        paths = [path for path, _ in hub.asked("hub")]
        assert len(set(paths)) == len(paths)  # what came is not fetched again
    else:
        assert "free" in line


def start_get(cache, **options):
    return subprocess.Popen(
        [ingle_process.BINARY, "get", REPO],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ingle_process.ENVIRONMENT | cache.variables,
        **options,
    )


def wait_for_part(hub, cache):
    """Until some of the weights have come."""
    name = etag_of(WEIGHTS, hub.files[WEIGHTS]) + ".ingle-part"
    part = cache.blobs / name
    deadline = time.monotonic() + 20
    while not (part.exists() and part.stat().st_size > 0):
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_download_keeps_what_came(hub, cache, number):
    hub.stall = threading.Event()
    process = start_get(cache)
    wait_for_part(hub, cache)
    process.send_signal(number)
    out, errors = process.communicate(timeout=ingle_process.STOP_SECONDS)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in errors and "are kept" in errors
    assert not list((cache.folder / ".locks").rglob("ingle.lock"))

    hub.stall.set()
    hub.requests.clear()
    assert cache.get().returncode == 0
    cache.expect_whole(hub)
    [(_, headers)] = hub.asked("cdn")
    assert headers["Range"].startswith("bytes=")


def test_live_lock_fails_fast_and_dead_pid_lock_stolen(hub, cache):
    hub.stall = threading.Event()
    process = start_get(cache)
    try:
        wait_for_part(hub, cache)
        started = time.monotonic()
        line = error_of(cache.get())
        assert time.monotonic() - started < 5
        assert f"process {process.pid}" in line
    finally:
        process.kill()
        process.communicate()
    hub.stall.set()
    assert list((cache.folder / ".locks").rglob("ingle.lock"))
    assert cache.get().returncode == 0
    cache.expect_whole(hub)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_progress_is_shown_on_a_terminal_only(hub, cache, is_terminal):
    hub.pause = 4 / (len(hub.files[WEIGHTS]) / PIECE)  # 4 seconds in all
    ours, theirs = pty.openpty() if is_terminal else os.pipe()
    done = subprocess.run(
        [ingle_process.BINARY, "get", REPO],
        stdout=subprocess.PIPE,
        stderr=theirs,
        timeout=60,
        check=False,
        env=ingle_process.ENVIRONMENT | cache.variables,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:
        pass  # how a terminal says that nobody has it open any more
    os.close(ours)
    assert done.returncode == 0
    if is_terminal:
        assert re.search(rb"downloading [\d.]+ kB \[#+ +\] +\d+%", shown)
        assert shown.endswith(b"\r\x1b[K")
    else:
        assert shown == b""


def test_copy_that_is_there_is_named_when_the_hub_is_not(hub, cache):
    assert cache.get().returncode == 0
    line = error_of(cache.get(HF_ENDPOINT="http://127.0.0.1:1"))
    assert "network" in line
    assert f"--model {REPO}" in line


@pytest.mark.parametrize("name", ["../x", "a/b/c", "org/tiny@", "http://a/b"])
def test_name_that_no_hub_has_is_refused(cache, name):
    done = cache.run("get", name)
    assert done.returncode == 2
    assert "ORG/NAME" in error_of(done) or "revision" in error_of(done)


def test_ls_shows_models_and_why_one_cannot_be_run(hub, cache):
    assert json.loads(cache.run("ls", "--json").stdout) == []
    assert "run ingle get" in cache.run("ls").stdout
    assert cache.get().returncode == 0
    [row] = json.loads(cache.run("ls", "--json").stdout)
    assert row["name"] == REPO
    assert row["source"] == "hub"
    assert row["folder"] == str(cache.snapshot)
    assert (row["family"], row["tier"]) == ("llama", "generic")
    assert row["context"] > 0
    assert row["problem"] is None
    sizes = [len(c) for n, c in hub.files.items() if n != "README.md"]
    assert row["bytes"] == sum(sizes)
    header, line = cache.run("ls").stdout.splitlines()
    assert header.split()[:3] == ["model", "family", "support"]
    assert line.split()[:3] == [REPO, "llama", "generic"]

    (cache.snapshot / WEIGHTS).unlink()
    [row] = json.loads(cache.run("ls", "--json").stdout)
    assert row["tier"] == "none"
    assert WEIGHTS in row["problem"]
    assert "can't be loaded" in cache.run("ls").stdout


def test_ambiguous_query_error(hub, cache):
    assert cache.get().returncode == 0
    other = cache.folder / "models--org--tiny-two"
    cache.repo.rename(other)
    assert cache.get().returncode == 0
    done = cache.run("generate", "--model", "tin", "--prompt", "abc")
    assert done.returncode == 2
    assert "org/tiny, org/tiny-two" in error_of(done)


def age(path, hours):
    then = time.time() - hours * 3600
    for folder, _, files in os.walk(path):
        for name in [folder, *(os.path.join(folder, f) for f in files)]:
            os.utime(name, (then, then), follow_symlinks=False)


def test_gc_conservative_rules(hub, cache):
    assert cache.get().returncode == 0
    old = cache.snapshot
    hub.commit = "b" * 40
    config = json.loads(hub.files["config.json"]) | {"changed": True}
    hub.files["config.json"] = json.dumps(config).encode()
    assert cache.get().returncode == 0
    cache.snapshot = cache.repo / "snapshots" / hub.commit
    (cache.blobs / "x.ingle-part").write_text("half")
    age(cache.repo, hours=2)
    (cache.blobs / ("e" * 64)).write_text("another program's, just now")
    (cache.blobs / "notes").write_text("a user's own")

    dry = cache.run("gc")
    assert dry.returncode == 0, dry.stderr
    assert "ingle gc --yes" in dry.stdout.splitlines()[-1]
    report = json.loads(cache.run("gc", "--json").stdout)
    assert report["removed"] is False
    assert {f["kind"] for f in report["found"]} == {
        "superseded snapshot",
        "unused blob",
        "part of a download",
    }
    assert old.exists() and (cache.blobs / "x.ingle-part").exists()

    done = cache.run("gc", "--yes", "--json")
    assert json.loads(done.stdout) == report | {"removed": True}
    assert not old.exists()
    for found in report["found"]:
        assert not os.path.exists(found["path"])
    assert (cache.blobs / ("e" * 64)).exists()
    assert (cache.blobs / "notes").exists()
    cache.expect_whole(hub)
    assert "nothing to remove" in cache.run("gc").stdout


def test_rm_takes_a_whole_name(hub, cache):
    assert cache.get().returncode == 0
    done = cache.run("rm", "tin")
    assert done.returncode == 2
    assert REPO in error_of(done)
    assert cache.snapshot.exists()
    done = cache.run("rm", "tiny", "--json")
    assert json.loads(done.stdout)["name"] == REPO
    assert not cache.repo.exists()
    assert "there is none" in error_of(cache.run("rm", "tiny"))


def test_rm_removes_an_imported_model(cache, binary, tmp_path):
    write_gguf(tmp_path / "small.gguf")
    assert cache.run("import", tmp_path / "small.gguf").returncode == 0
    [row] = json.loads(cache.run("ls", "--json").stdout)
    done = cache.run("rm", "small", "--json")
    assert json.loads(done.stdout) == {"name": "small", "bytes": row["bytes"]}
    assert not os.path.exists(row["folder"])
