"""What fits: predicted, measured, and refused where it doesn't."""

import json

import pytest

import ingle_process

# Of SmolLM2: its weights and a little over a thousand tokens.
TIGHT = 0.21  # GB


def fit(*arguments):
    done = ingle_process.run("fit", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("context", "arguments"),
    [
        (64, ()),
        (4096, ()),
        (4096, ("--kv-quant", "8")),
        (4096, ("--kv-quant", "4", "--kv-group-size", "32")),
        (1024, ("--exact",)),
    ],
)
def test_prediction_is_within_15_percent_of_the_peak(model, context, arguments):
    predicted = fit("--model", model, "--ctx", context, *arguments)
    sizes = ("--prompt", context, "--gen", 0, "--repeat", 1)
    done = ingle_process.run(
        "bench", "--json", "--model", model, *sizes, *arguments
    )
    assert done.returncode == 0, done.stderr
    peak = json.loads(done.stdout)["peak_rss_bytes"]
    assert predicted["total_bytes"] == pytest.approx(peak, rel=0.15)


def test_fit_says_what_a_budget_holds(model):
    wide = fit("--model", model)
    assert wide["fits"]
    assert wide["max_safe_context"] == wide["model_context"] == 8192
    tight = fit("--model", model, "--memory-budget", TIGHT)
    assert not tight["fits"]
    assert 0 < tight["max_safe_context"] < 8192
    quantised = fit(
        "--model", model, "--memory-budget", TIGHT, "--kv-quant", "4"
    )
    assert quantised["max_safe_context"] > 2 * tight["max_safe_context"]
    table = ingle_process.run(
        "fit", model, "--ctx", 100, "--memory-budget", TIGHT
    )
    assert "fits" in table.stdout
    assert str(tight["max_safe_context"]) in table.stdout


# Acceptance 102.
@pytest.mark.parametrize("command", ["serve", "generate"])
def test_budget_below_weights_refuses_start(model, command):
    what = ("--port", 0) if command == "serve" else ("--prompt", "hi")
    done = ingle_process.run(
        command, "--model", model, "--memory-budget", 0.05, *what
    )
    assert done.returncode == 1
    (line,) = done.stderr.strip().splitlines()
    assert str(model) in line
    assert "50 MB may be used" in line
    assert "--memory-budget" in line


# Acceptance 101.
def test_admission_over_budget_400(start_server, model):
    budget = ("--memory-budget", TIGHT)
    server = start_server(*budget)
    most = fit("--model", model, *budget)["max_safe_context"]
    body = {"model": "any", "prompt": [1, 2, 3], "temperature": 0}
    code, error = server.error_of(
        "/v1/completions", body | {"max_tokens": most}
    )
    assert code == 400
    assert error["type"] == "memory_admission"
    assert error["code"] == "context_over_budget"
    assert error["param"] == "max_tokens"
    for part in ("3 tokens", str(most), str(most + 3)):
        assert part in error["message"]

    with server.post("/v1/completions", body | {"max_tokens": 4}) as answer:
        assert json.load(answer)["usage"]["completion_tokens"] <= 4
    # What is not asked for is cut to what fits.
    long = body | {"prompt": [1] * (most - 5), "ignore_eos": True}
    with server.post("/v1/completions", long) as answer:
        assert json.load(answer)["usage"]["completion_tokens"] == 5
