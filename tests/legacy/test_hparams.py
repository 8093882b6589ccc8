"""HParams does what that of TensorFlow 1.15 does, which runs beside it where it is."""

import copy
import json
import pickle

import pytest
import tensorflow as tf

from contrib_opt.legacy.hparams import HParams, parse_values

TF1 = tf.__version__.startswith("1.")


def example(kind=HParams):
    lists = {"d": [1, 2, 3], "g": [0.1, 0.2], "h": ["u", "v"]}
    return kind(a=1, b=2.5, c="x", e=True, f=None, **lists)


# Calls, and the value of the hyperparameter afterwards, or the error.
CALLS = [
    ("parse", "a=3", {"a": 3}),
    ("parse", "a=3,b=4", {"a": 3, "b": 4.0}),
    ("parse", "a = 3, b=1e-3", {"a": 3, "b": 0.001}),
    ("parse", "a=-3,", {"a": -3}),
    ("parse", "", {}),
    ("parse", "c=hello world", {"c": "hello world"}),
    ("parse", "c=", {"c": ""}),
    ("parse", "c=a=b", {"c": "a=b"}),
    ("parse", "c='q'", {"c": "'q'"}),
    ("parse", "d=[ 4, 5 ],a=2", {"d": [4, 5], "a": 2}),
    ("parse", "d=[4]", {"d": [4]}),
    ("parse", "d=[]", {"d": []}),
    ("parse", "g=[1,2]", {"g": [1.0, 2.0]}),
    ("parse", "h=[p,q]", {"h": ["p", "q"]}),
    ("parse", "e=false", {"e": False}),
    ("parse", "e=0", {"e": False}),
    ("parse", "e=True", {"e": True}),
    ("parse", "e=yes", ValueError),
    ("parse", "a=1.5", ValueError),
    ("parse", "a=true", ValueError),
    ("parse", "a=[1]", ValueError),
    ("parse", "b=", ValueError),
    ("parse", "b=x", ValueError),
    ("parse", "c=[x]", ValueError),
    ("parse", "d=4", ValueError),
    ("parse", "d=[1,2", ValueError),
    ("parse", "d[7]=1", ValueError),
    ("parse", "d[0]=1,d[0]=2", ValueError),
    ("parse", "d=[1],d[0]=2", ValueError),
    ("parse", "a=1,a=2", ValueError),
    ("parse", "zz=1", ValueError),
    ("parse", "a", ValueError),
    ("parse", " a=3", ValueError),
    ("set_hparam", "a", 3, {"a": 3}),
    ("set_hparam", "b", 1, {"b": 1.0}),
    ("set_hparam", "d", [1], {"d": [1]}),
    ("set_hparam", "d", [], {"d": []}),
    ("set_hparam", "g", [1], {"g": [1.0]}),
    ("set_hparam", "e", False, {"e": False}),
    ("set_hparam", "f", 7, {"f": 7}),
    ("set_hparam", "a", 3.0, ValueError),
    ("set_hparam", "a", "3", ValueError),
    ("set_hparam", "a", True, ValueError),
    ("set_hparam", "a", None, ValueError),
    ("set_hparam", "a", [1], ValueError),
    ("set_hparam", "b", "1", ValueError),
    ("set_hparam", "c", 1, ValueError),
    ("set_hparam", "d", 1, ValueError),
    ("set_hparam", "d", [1.5], ValueError),
    ("set_hparam", "e", 0, ValueError),
    ("set_hparam", "zz", 1, KeyError),
    ("add_hparam", "n", 1, {"n": 1}),
    ("add_hparam", "n", [1], {"n": [1]}),
    ("add_hparam", "n", [], ValueError),
    ("add_hparam", "a", 1, ValueError),
    ("add_hparam", "values", 1, ValueError),
    ("override_from_dict", {"a": 5, "b": 1}, {"a": 5, "b": 1.0}),
    ("override_from_dict", {"zz": 1}, KeyError),
    ("parse_json", '{"d": [4]}', {"d": [4]}),
    ("parse_json", '{"a": "s"}', ValueError),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_calls(call):
    method, arguments, expected = call[0], call[1:-1], call[-1]
    for kind in [HParams] + ([tf.contrib.training.HParams] if TF1 else []):
        hparams = example(kind)
        if isinstance(expected, dict):
            wanted = dict(hparams.values(), **expected)
            result = getattr(hparams, method)(*arguments)
            assert result is (hparams if method[0] in "po" else None)
            values = hparams.values()
            assert values == wanted
            assert [type(values[n]) for n in wanted] == list(map(type, wanted.values()))
        else:
            with pytest.raises(expected):
                getattr(hparams, method)(*arguments)


def test_reading():
    for kind in [HParams] + ([tf.contrib.training.HParams] if TF1 else []):
        hparams = example(kind)
        assert hparams.a == 1 and "a" in hparams and "zz" not in hparams
        assert hparams.get("a", 5) == 1 and hparams.get("zz", 5) == 5
        assert hparams.get("d", [9]) == [1, 2, 3] and hparams.get("zz") is None
        for name, default in (("a", "s"), ("d", 9), ("a", 2.5), ("d", ["s"])):
            with pytest.raises(ValueError):
                hparams.get(name, default)
        assert str(hparams).startswith("a=1,b=2.5,c=x,e=True,f=None,d=[1, 2, 3],")
        assert repr(hparams).startswith(
            "HParams([('a', 1), ('b', 2.5), ('c', 'x'), ('d', [1, 2, 3])"
        )
        assert json.loads(hparams.to_json()) == hparams.values()
        assert hparams.to_json(None, (",", ":"), True).startswith('{"a":1,"b":2.5,')
        hparams.a = 9
        assert hparams.values()["a"] == 9
        for other in (copy.deepcopy(hparams), pickle.loads(pickle.dumps(hparams))):
            assert other.values() == hparams.values()
        hparams.del_hparam("a")
        assert "a" not in hparams and not hasattr(hparams, "a")
        hparams.set_model_structure("m")
        assert hparams.get_model_structure() == "m"
        assert kind(model_structure=3).get_model_structure() == 3


def test_parse_values():
    functions = [parse_values] + ([tf.contrib.training.parse_values] if TF1 else [])
    for function in functions:
        types = {"a": int, "d": float}
        assert function("a=1,d[1]=7", types) == {"a": 1, "d": {1: 7.0}}
        assert function("zz=1,a=2", types, ignore_unknown=True) == {"a": 2}
        with pytest.raises(ValueError, match="zz"):
            function("zz=1", types)


def test_beyond_tensorflow_1_15():
    assert example().parse("d[1]=7,d[0]=8").d == [8, 7, 3]
    assert example().parse("f=3").f == "3"
    with pytest.raises(ValueError, match="protocol buffer"):
        HParams(hparam_def=object())


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="'b' takes float, and not 'x'"):
        example().parse("b=x")
    with pytest.raises(ValueError, match="Cannot read 'oops': write name=value"):
        example().parse("a=1,oops")
    with pytest.raises(ValueError, match=r"'d' is \[1, 2, 3\], and has no element 7"):
        example().parse("d[7]=1")
