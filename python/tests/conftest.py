"""What the tests share: small models, and a cache of their own."""
import onnx.parser
import pytest

import tc_emit

HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'


def model(text):
    """A model in ONNX's text syntax, without its header."""
    return onnx.parser.parse_model(HEADER + text)


SCALE = model("g (float[n,2] x, float[2] w) => (float[n,2] y, float[n,2] z) { y = Mul(x, w)\n z = Add(y, w) }")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("TC_EMIT_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def scale(cache):
    """y = x * w, z = y + w with x of shape [3][2]."""
    return tc_emit.compile(SCALE, dims={"n": 3}, name="scale")
