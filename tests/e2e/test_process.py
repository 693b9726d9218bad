"""How the server starts and ends."""

import http.client
import signal
import socket
import subprocess
import threading

import pytest

import ingle_process

# Greedy, this goes round in circles.
ENDLESS = {
    "prompt": "The",
    "stream": True,
    "temperature": 0,
    "max_tokens": 8000,
}
COMMANDS = {
    "binary": (ingle_process.BINARY, "serve"),
    "script": (ingle_process.ROOT / "scripts" / "serve",),
}


def drain(response):
    try:
        while response.read(4096):
            pass
    except (OSError, http.client.HTTPException):
        pass  # cut off: that is for the client's side to handle


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", COMMANDS)
def test_signal_ends_an_idle_server_with_code_0(start_server, number, command):
    server = start_server(command=COMMANDS[command])
    assert server.end(number) == 0, server.log()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_while_streaming_ends_with_code_0(start_server, number):
    server = start_server()
    response = server.post("/v1/completions", ENDLESS)
    assert response.readline().startswith(b"data: ")
    reader = threading.Thread(target=drain, args=(response,))
    reader.start()
    assert server.end(number) == 0, server.log()
    reader.join(ingle_process.STOP_SECONDS)
    assert not reader.is_alive(), "the connection was left open"


def test_signal_while_loading_ends_with_code_0(model):
    process = subprocess.Popen(
        [ingle_process.BINARY, "serve", "--port", "0", "--model", model],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ingle_process.ENVIRONMENT,
    )
    for line in process.stdout:
        if ingle_process.LISTENING.search(line):
            break
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=ingle_process.STOP_SECONDS)
    assert process.returncode == 0, output


def test_port_in_use_is_a_clear_message(model):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = ingle_process.run("serve", "--model", model, "--port", port)
    assert done.returncode not in (0, -signal.SIGABRT, -signal.SIGSEGV)
    line = done.stderr.strip().splitlines()[-1]
    assert str(port) in line
    assert "in use" in line


def test_port_out_of_range_says_the_range(model):
    done = ingle_process.run("serve", "--model", model, "--port", 99999)
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert "65535" in done.stderr


def test_other_machines_are_not_served_without_a_key(model):
    done = ingle_process.run(
        "serve", "--model", model, "--host", "0.0.0.0", "--port", 0
    )
    assert done.returncode > 0
    assert "0.0.0.0" in done.stderr
