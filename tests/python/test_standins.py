"""Stand-ins take what the releases' own functions and classes take, as tests/engines keeps it of their wheels."""
import ast
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.append(os.path.join(ROOT, "tests", "engines"))

import signatures  # noqa: E402
import store  # noqa: E402

ORACLE = "vllm/model_executor/layers/fused_moe/oracle/mxfp4.py"
CONVERTERS = ("convert_gpt_oss_weight_to_mxfp4_moe_kernel_format", "convert_weight_to_mxfp4_moe_kernel_format")
# Only the stand-ins have these: what builds a layer for a test and calls its converter.
OWN = {"GptOssMxfp4MoEMethod.__init__", "GptOssMxfp4MoEMethod.convert", "Mxfp4MoEMethod.convert", "Mxfp4OnlineMoEMethod.convert",
       "QuarkOCP_MX_MoEMethod.convert", "make_parameters", "padded_to_fours"}


def of_standin(age):
    """{function: names of its parameters}"""
    with open(os.path.join(ROOT, "tests", "python", "standin", age, ORACLE), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    return {node.name: [one.arg for one in node.args.args] for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name in CONVERTERS}


def of_release(version):
    found = store.load(version)["tables"]["general"]["signatures"]
    return {name: found[name] for name in CONVERTERS}


def without_optional(parameters, kept):
    """The parameters without those that have a default and that `kept` lacks; what an object is called on is "self"."""
    names = {one.partition("=")[0] for one in kept}
    return [one if one != "cls" else "self" for one in parameters if "=" not in one or one.partition("=")[0] in names]


class Standins(unittest.TestCase):
    def test_converters(self):
        self.assertEqual(of_standin("seed"), of_release("0.21.0"))
        self.assertEqual(of_standin("newer"), of_release("0.28.0"))

    def test_everything_else(self):
        """The same names in the same order with the same defaults; what a stand-in lacks has a default."""
        compared = 0
        for version, known in signatures.stored().items():
            for module, names in signatures.standins().items():
                for name in sorted(set(names) - OWN):
                    with self.subTest(release=version, module=module, name=name):
                        self.assertIn(name, known.get(module, {}))
                        real, mine = known[module][name], names[name]
                        if mine == "class" or real == "class":
                            self.assertEqual(mine, real)
                        else:
                            self.assertEqual(without_optional(mine, mine), without_optional(real, mine))
                        compared += 1
        self.assertGreater(compared, 100)


if __name__ == "__main__":
    unittest.main()
