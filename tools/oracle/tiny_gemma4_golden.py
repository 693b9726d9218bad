"""Makes tests/data/tiny_gemma4.json.

    python tiny_gemma4_golden.py

As tiny_moe_golden.py, of the models of tiny_gemma4.py.
"""

import tiny_gemma4
import tiny_golden
import tiny_moe
import tiny_moe_golden

# The same token once more looks much like the last one: these models repeat
# themselves.
DISTINCT = 4


def watch(model):
    routers = []
    for layer in model.layers:
        if layer.enable_moe:
            router = layer.router
            router.proj = tiny_moe_golden.Watched(
                router.proj, router.config.top_k_experts
            )
            routers.append(router.proj)
    return routers


def answers(model):
    routers = watch(model)
    return [
        tiny_moe_golden.answer(model, routers, length, distinct=DISTINCT)
        for length in tiny_moe_golden.LENGTHS
    ]


def main():
    tiny_golden.write_cases(
        "tiny_gemma4",
        [
            tiny_golden.make_case(*model, tiny_moe.write, answers)
            for model in tiny_gemma4.models()
        ],
    )


if __name__ == "__main__":
    main()
