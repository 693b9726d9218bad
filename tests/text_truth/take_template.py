"""Prints a template that a module of a package has as a constant.

    take_template.py WHEEL MODULE NAME

The module is read, not run.
"""

import ast
import sys
import zipfile


def constant(source, name):
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            return ast.literal_eval(node.value)
    raise SystemExit(f"no constant {name}")


def main(wheel, module, name):
    with zipfile.ZipFile(wheel) as package:
        source = package.read(module)
    sys.stdout.write(constant(source, name))


if __name__ == "__main__":
    main(*sys.argv[1:])
