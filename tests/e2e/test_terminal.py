"""What a person meets: chat on a terminal, and completions in a shell."""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import termios
import threading
import time

import pytest

import ingle_process
from chat_terminal import ANSWER_SECONDS, END, PROMPT, STATUS, Chat
from ingle_process import BINARY, ENVIRONMENT

QUESTION = "What is the capital of France?"
ANSWERING = r"\n.*\w+ \w+ \w+"
INTERRUPT = "\x03"
UP = "\x1b[A"
SEARCH = "\x12"
SUSPEND = "\x1a"
PASTE_BEGIN = "\x1b[200~"
PASTE = PASTE_BEGIN + "{}\x1b[201~"
PASTES_MARKED = b"\x1b[?2004h"
PASTES_UNMARKED = b"\x1b[?2004l"


def chat_command(model, *arguments):
    return [BINARY, "chat", "--model", model, "--temperature", "0", *arguments]


@pytest.fixture
def start_chat(model, tmp_path):
    chats = []

    def start(*arguments, **options):
        command = chat_command(model, *arguments)
        chats.append(Chat(command, tmp_path / "home", **options))
        return chats[-1]

    yield start
    for chat in chats:
        chat.close()


def run_chat(model, text, *arguments):
    return subprocess.run(
        chat_command(model, *arguments),
        input=text,
        capture_output=True,
        text=True,
        timeout=ANSWER_SECONDS,
        check=False,
        env=ENVIRONMENT,
    )


def test_chat_answers_and_remembers_what_was_said(start_chat):
    chat = start_chat("--max-tokens", "40")
    shown = chat.ask(QUESTION)
    assert "Paris" in shown
    assert re.search(STATUS, shown)
    chat.ask("The secret word is pineapple.")
    assert "pineapple" in chat.ask("What is the secret word?").lower()


def test_ctrl_c_stops_the_answer_and_not_the_program(start_chat):
    chat = start_chat("--max-tokens", "60")
    chat.type("Write a long story about a dragon and a knight.\r")
    chat.wait_for(ANSWERING)
    chat.type(INTERRUPT)
    assert "stopped" in chat.wait_for(PROMPT)
    # The next one is whole; it knows of the story as far as that came.
    assert "stopped" not in chat.ask("Thank you. What was that about?")
    chat.ask("/clear")
    assert "Paris" in chat.ask(QUESTION)
    chat.type(END)
    assert chat.exit_code() == 0


def test_many_ctrl_c_never_end_the_program(start_chat):
    chat = start_chat("--max-tokens", "200")
    chat.type("Tell me about the sea.\r")
    chat.wait_for(ANSWERING)
    for _ in range(5):
        os.write(chat.fd, INTERRUPT.encode())
    assert "stopped" in chat.wait_for(PROMPT)
    chat.type("/clear\r")
    chat.wait_for("new conversation" + PROMPT)


def test_ctrl_c_gives_up_a_line_and_hints_in_an_empty_one(start_chat):
    chat = start_chat()
    chat.type("half a li" + INTERRUPT)
    shown = chat.wait_for(PROMPT)
    assert "^C" in shown and "Ctrl-D" not in shown
    chat.type(INTERRUPT)
    assert "Ctrl-D" in chat.wait_for(PROMPT)
    chat.type('"""open\r')
    chat.wait_for(r"\n\. $")
    chat.type(INTERRUPT)
    chat.wait_for(PROMPT)
    assert "new conversation" in chat.ask("/clear")


@pytest.mark.parametrize("how", [END, "/exit\r"])
def test_ctrl_d_and_exit_end_with_code_0(start_chat, how):
    chat = start_chat()
    chat.type(how)
    assert chat.exit_code() == 0


def test_terminal_is_as_it_was_after_a_chat(start_chat):
    chat = start_chat()
    chat.type("half a line")
    os.kill(chat.process.pid, signal.SIGTERM)
    assert chat.exit_code() == -signal.SIGTERM
    _, _, _, local, _, _, characters = termios.tcgetattr(chat.fd)
    for flag in (termios.ECHO, termios.ICANON, termios.ISIG):
        assert local & flag
    assert characters[termios.VINTR] == INTERRUPT.encode()


def test_commands_do_what_help_says(start_chat):
    chat = start_chat("--max-tokens", "8")
    for word in ("/clear", "/system", "/exit", "@PATH"):
        assert word in chat.ask("/help")
    assert "set" in chat.ask("/system Answer in one word.")
    assert "no system prompt" in chat.ask("/system")
    lines = chat.ask("/frobnicate now").strip().splitlines()
    assert len(lines) == 3  # what was typed, the message, the prompt
    assert "/frobnicate" in lines[1] and "/help" in lines[1]


def test_files_go_with_the_message(start_chat, tmp_path):
    (tmp_path / "note.txt").write_text("The secret word is pineapple.\n")
    chat = start_chat("--max-tokens", "30", cwd=tmp_path)
    chat.type("What is the secret word in @no\t\r")  # Tab completes
    shown = chat.wait_for(PROMPT)
    assert "@note.txt" in shown
    assert "pineapple" in shown


def test_message_with_a_file_that_is_not_there_is_not_sent(start_chat):
    chat = start_chat("--max-tokens", "8")
    shown = chat.ask("Sum up @absent.txt")
    assert "@absent.txt is not there" in shown
    assert "tokens" not in shown
    assert "tokens" in chat.ask("Write to me@example.org")


def test_lines_go_on_after_a_backslash_in_quotes_and_in_a_paste(start_chat):
    chat = start_chat("--max-tokens", "8")
    chat.type("one\\\r")
    chat.wait_for(r"\n\. $")
    assert re.search(STATUS, chat.ask("two"))
    chat.type('"""one\r')
    chat.wait_for(r"\n\. $")
    assert re.search(STATUS, chat.ask('@two"""'))
    chat.type(PASTE.format("three\rfour é\r"))
    chat.wait_for("four é$")
    assert len(re.findall(STATUS, chat.ask(""))) == 1


def test_history_is_kept_for_the_next_chat_and_private(start_chat, tmp_path):
    first = start_chat("--max-tokens", "4")
    first.ask("/system grün \\ über")
    first.type(PASTE.format("two\rlines") + "\r")
    first.wait_for(PROMPT)
    first.type(END)
    assert first.exit_code() == 0
    kept = tmp_path / "home" / "chat_history"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert sorted(os.listdir(kept.parent)) == [kept.name, f"{kept.name}.lock"]
    second = start_chat("--max-tokens", "4")
    second.type(UP)
    second.wait_for(r"two\nlines$")
    second.type(UP + UP)
    second.wait_for(r"/system grün \\ über")


def test_chats_side_by_side_keep_one_history(start_chat, tmp_path):
    first = start_chat("--max-tokens", "4")
    second = start_chat("--max-tokens", "4")
    first.ask("/system one")
    second.ask("/system two")
    first.ask("/system three")
    for chat in (first, second):
        chat.type(END)
        assert chat.exit_code() == 0
    kept = (tmp_path / "home" / "chat_history").read_text().splitlines()
    assert kept == ['"/system one"', '"/system two"', '"/system three"']


def test_chats_that_are_typed_into_at_once_lose_nothing(start_chat, tmp_path):
    chats = {name: start_chat() for name in ("first", "second")}
    typed = {
        name: [f"/system {name} {number}" for number in range(40)]
        for name in chats
    }

    def type_all(name):
        for line in typed[name]:
            shown = chats[name].ask(line)
            assert "not kept" not in shown

    with concurrent.futures.ThreadPoolExecutor() as pool:
        for done in [pool.submit(type_all, name) for name in chats]:
            done.result()
    home = tmp_path / "home"
    lines = (home / "chat_history").read_text().splitlines()
    kept = [json.loads(line) for line in lines]
    assert len(kept) == 80
    for name in chats:
        assert [line for line in kept if f" {name} " in line] == typed[name]
    assert sorted(os.listdir(home)) == ["chat_history", "chat_history.lock"]


def test_history_that_cant_be_kept_is_said_once(start_chat, tmp_path):
    (tmp_path / "home" / "chat_history").mkdir(parents=True)
    chat = start_chat("--max-tokens", "4")
    assert "history" in chat.shown
    for _ in range(2):
        assert "history" not in chat.ask("/system x")


def test_paste_whose_end_is_lost_is_given_up_by_ctrl_c(start_chat):
    chat = start_chat("--max-tokens", "4")
    chat.type(PASTE_BEGIN + "one\rtwo")
    chat.type(INTERRUPT)
    chat.wait_for(PROMPT)
    assert re.search(STATUS, chat.ask("Hello"))


def test_paste_that_is_too_long_is_left_out(start_chat):
    chat = start_chat("--max-tokens", "4")
    sender = threading.Thread(target=chat.type, args=(PASTE.format("a" * 1100000),))
    sender.start()
    shown = chat.wait_for("is left out.*\n> $")
    sender.join()
    assert "@FILE" in shown
    assert re.search(STATUS, chat.ask("Hello"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_terminal_marks_no_pastes_after_a_signal_ends_a_chat(start_chat, number):
    chat = start_chat("--max-tokens", "4")
    assert PASTES_MARKED in chat.raw
    chat.raw = b""
    chat.process.send_signal(number)
    chat.read_to_end()
    assert PASTES_UNMARKED in chat.raw
    assert PASTES_MARKED not in chat.raw
    assert chat.process.wait(ingle_process.STOP_SECONDS) == -number


@pytest.mark.parametrize("typed", ["Hel", SEARCH, PASTE_BEGIN + "Hel"])
def test_interrupt_from_elsewhere_ends_no_chat(start_chat, typed):
    chat = start_chat("--max-tokens", "4")
    chat.type(typed)
    for _ in range(3):
        time.sleep(0.1)  # nothing is shown that tells when it waits for a key
        chat.process.send_signal(signal.SIGINT)
    chat.type(INTERRUPT + INTERRUPT)
    chat.wait_for(PROMPT)
    while chat.read(0.5):  # that of the second one
        pass
    assert re.search(STATUS, chat.ask("Hello"))
    chat.type(END)
    assert chat.exit_code() == 0


@pytest.mark.parametrize(
    "number", [signal.SIGHUP, signal.SIGTERM, signal.SIGTSTP]
)
def test_signal_that_a_shell_ignores_leaves_the_line(start_chat, number):
    chat = start_chat("--max-tokens", "4", ignoring=[number])
    chat.type("Hel")
    chat.wait_for("Hel$")
    for _ in range(3):
        time.sleep(0.1)
        chat.process.send_signal(number)
    chat.type("lo")
    chat.wait_for("^lo$")
    assert re.search(STATUS, chat.ask(""))


def test_line_is_there_again_after_a_suspension(model, tmp_path):
    chat = Chat(
        [
            *("bash", "-mc", '"$@"; stty -a; fg', "bash"),
            *chat_command(model, "--max-tokens", "4"),
        ],
        tmp_path / "home",
    )
    try:
        chat.type("Hel")
        chat.wait_for("Hel$")
        chat.type(SUSPEND)
        shown = chat.wait_for(r"> Hel$")
        assert re.search(r"\bisig icanon\b", shown)
        assert PASTES_UNMARKED in chat.raw
        assert chat.raw.rindex(PASTES_MARKED) > chat.raw.index(PASTES_UNMARKED)
        assert re.search(STATUS, chat.ask("lo"))
        chat.type(END)
        assert chat.exit_code() == 0
    finally:
        chat.close()


def test_line_takes_the_terminals_new_width(start_chat):
    chat = start_chat()
    chat.resize(20)
    time.sleep(0.1)
    chat.type("a" * 30)
    chat.wait_for("a{18} \b")  # how libedit ends a line


def test_terminal_marks_no_pastes_while_a_chat_is_suspended(start_chat):
    chat = start_chat("--max-tokens", "4")
    chat.type(SUSPEND + "x")  # stops nothing here: no shell could wake it
    chat.wait_for("x")
    off = chat.raw.index(PASTES_UNMARKED)
    assert chat.raw.rindex(PASTES_MARKED) > off
    assert re.search(STATUS, chat.ask(" Hello"))


def test_conversation_that_is_too_long_says_what_to_do(start_chat, tmp_path):
    (tmp_path / "long.txt").write_text("word " * 20000)
    chat = start_chat("--max-tokens", "4", cwd=tmp_path)
    shown = chat.ask("Sum up @long.txt")
    assert "does not fit the model's context" in shown
    chat.ask("Hello")
    shown = chat.ask("Sum up @long.txt")
    assert "/clear" in shown
    assert re.search(STATUS, chat.ask("Hello"))


def test_piped_input_is_one_message_with_nothing_around_the_answer(model):
    done = run_chat(model, f"{QUESTION}\n", "--max-tokens", "40")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "The capital of France is Paris.\n"


def test_piped_input_is_sent_as_it_is(model):
    done = run_chat(model, "/exit\n@absent\n", "--max-tokens", "8")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


def test_empty_piped_input_is_a_clear_error(model):
    done = run_chat(model, " \n")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "empty" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_an_answer_to_a_pipe_with_code_130(model, number):
    process = subprocess.Popen(
        [BINARY, "chat", "--model", model, "--temperature", "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    process.stdin.write("Write a long story about a dragon and a knight.")
    process.stdin.close()
    assert process.stdout.read(1)
    process.send_signal(number)
    process.stdout.read()
    process.stdout.close()
    assert process.wait(ingle_process.STOP_SECONDS) == 130


def test_bash_completes_commands_and_flags(binary, tmp_path):
    script = ingle_process.run("completions", "bash").stdout
    (tmp_path / "script").write_text(script)
    subprocess.run(["bash", "-n", tmp_path / "script"], check=True)

    def complete(*words):
        code = (
            f'source {tmp_path}/script; COMP_WORDS=("$@"); '
            "COMP_CWORD=$(($# - 1)); _ingle; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-euc", code, "bash", *words],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.split()

    assert complete("ingle", "se") == ["serve"]
    names = complete("ingle", "")
    for name in ("serve", "chat", "generate", "import", "get", "completions"):
        assert name in names
    flags = complete("ingle", "serve", "-")
    shown = ingle_process.run("serve", "--help").stdout
    listed = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", shown))
    assert {"--port", "--temp", "--api-key", "--help"} <= set(flags)
    assert set(flags) - {"-h"} == listed
    # A value, and a word that is no flag, are files: left to the shell.
    assert complete("ingle", "serve", "--model", "-") == []
    assert complete("ingle", "import", "x") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_their_script(binary, tmp_path, shell):
    script = ingle_process.run("completions", shell).stdout
    assert "serve" in script
    if not shutil.which(shell):
        pytest.skip(f"no {shell} here to read its script")
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def test_unknown_shell_is_a_usage_error(binary):
    done = ingle_process.run("completions", "csh")
    assert done.returncode == 2
    assert "csh" in done.stderr


def test_every_command_has_an_example_in_its_help(binary):
    names = re.findall(
        r"^  ([a-z]+) ", ingle_process.run().stdout, re.MULTILINE
    )
    assert "chat" in names and "completions" in names
    for name in names:
        shown = ingle_process.run(name, "--help").stdout
        assert f"ingle {name}" in shown.rsplit("Example", 1)[-1], name
