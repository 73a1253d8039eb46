"""The stand-ins' converters take what the releases' own take, as tests/engines keeps it of each wheel."""
import ast
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.append(os.path.join(ROOT, "tests", "engines"))

import store  # noqa: E402

ORACLE = "vllm/model_executor/layers/fused_moe/oracle/mxfp4.py"
CONVERTERS = ("convert_gpt_oss_weight_to_mxfp4_moe_kernel_format", "convert_weight_to_mxfp4_moe_kernel_format")


def of_standin(age):
    """{function: names of its parameters}"""
    with open(os.path.join(ROOT, "tests", "python", "standin", age, ORACLE), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    return {node.name: [one.arg for one in node.args.args] for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name in CONVERTERS}


def of_release(version):
    found = store.load(version)["tables"]["general"]["signatures"]
    return {name: found[name] for name in CONVERTERS}


class Standins(unittest.TestCase):
    def test_signatures(self):
        self.assertEqual(of_standin("seed"), of_release("0.21.0"))
        self.assertEqual(of_standin("newer"), of_release("0.28.0"))


if __name__ == "__main__":
    unittest.main()
