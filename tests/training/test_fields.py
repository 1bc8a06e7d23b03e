import json
import math

import numpy as np
import pytest

from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.fields import differences, from_json, to_json


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"model": "hgru"}, "stages is missing; RunConfig needs it"),
        ({"model": 3, "stages": []}, "model must be a text; got 3"),
        ({"modle": "hgru"}, "modle is not a field of RunConfig; did you mean 'model'?"),
        ({"zzzz": 1}, "zzzz is not a field of RunConfig; it has recipe, model"),
        ({"model": "hgru", "stages": 3}, "stages must be a list; got 3"),
        ({"model": "hgru", "stages": [3]}, "stages[0] must be an object; got 3"),
        ({"model": "hgru", "stages": [], "options": [1]}, "options must be an object with names"),
        ({"model": "hgru", "stages": [], "batch": 1.5}, "batch must be a whole number; got 1.5"),
        ({"model": "hgru", "stages": [], "batch": True}, "batch must be a whole number; got True"),
        ({"model": "hgru", "stages": [], "compile": 1}, "compile must be true or false; got 1"),
        ({"model": "hgru", "stages": [], "clip": "a"}, "clip must be a number; got 'a'"),
        ({"model": "hgru", "stages": [], "clip": math.nan}, "clip must be a number; got nan"),
        (
            {"model": "hgru", "stages": [], "precision": "fp8"},
            "precision must be one of float32, tf32, bfloat16; got 'fp8'",
        ),
        (
            {"model": "hgru", "stages": [{"sources": [{"length": "6"}], "images": 64}]},
            "stages[0].sources[0].length must be a whole number; got '6'",
        ),
        (3, "RunConfig must be an object; got 3"),
    ]
    + [
        ({"model": "hgru", "stages": [], "options": options}, message)
        for options, message in (
            (
                {"timesteps": np.int64(2)},
                "options.timesteps must be what JSON can hold, such as Python's own numbers and "
                "texts; got np.int64(2)",
            ),
            ({"a": {"b": [1, {2}]}}, "options.a.b[1] must be what JSON can hold, such as Pyt"),
            ({"limit": math.inf}, "options.limit must be a finite number; got inf"),
            ({"a": {1: 2}}, "options.a must be an object with names for keys; got {1: 2}"),
        )
    ],
)
def test_a_wrong_field_is_named_by_its_place(value, message):
    with pytest.raises(TypeError) as error:
        from_json(RunConfig, value)
    assert message in str(error.value)


def test_what_json_can_hold_goes_through_it_unchanged():
    options = {"a": {"b": [None, True, -0.5, 1e-300, 2**70, "\u00fc\ud800", {}]}, "": []}
    stages = (Stage(sources=(Source(changes={"canvas": 200}),), images=64),)
    config = RunConfig(model="hgru", stages=stages, options=options)
    again = RunConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert again == config and again.hash == config.hash


def test_json_and_back_is_the_same():
    stage = Stage(sources=(Source(length=6), Source(length=9)), shares=(1, 3), images=64)
    assert from_json(Stage, to_json(stage)) == stage
    assert to_json(stage)["shares"] == [1.0, 3.0]


def test_differences_name_every_place():
    there = {"a": 1, "b": [1, 2], "c": {"d": 1}, "gone": 0}
    here = {"a": 1, "b": [1, 3], "c": {"d": [1]}, "new": None}
    assert differences(there, here) == [
        "b[1]: 2 there, 3 here",
        "c.d: 1 there, [1] here",
        "gone: 0 there, None here",
    ]
    assert differences([1], [1, 2], "x") == ["x: [1] there, [1, 2] here"]
