"""The loop in a folder that already holds a run."""

from dataclasses import replace

import pytest

from hgru_vision.recipes.quick import SMALL
from hgru_vision.training.config import Stage


def test_a_finished_run_is_not_trained_again(whole, tiny, monkeypatch, quiet):
    folder, result = whole
    monkeypatch.setattr("hgru_vision.training.loop._train_stage", None)
    assert quiet(tiny(), folder, resume=True) == result


def test_a_folder_in_use_is_refused_without_resume(whole, tiny, quiet):
    with pytest.raises(
        FileExistsError, match="holds a run; resume it \\(--resume\\), or give another folder"
    ):
        quiet(tiny(), whole[0])


def test_another_configuration_is_refused_naming_the_fields(whole, tiny, quiet):
    other = Stage(sources=(replace(SMALL, length=4),), images=96)
    with pytest.raises(ValueError) as error:
        quiet(tiny(stages=(other,), data_seed=3, recipe="other"), whole[0], resume=True)
    assert "stages[0].sources[0].length: 3 there, 4 here; data_seed: 0 there, 3 here" in str(
        error.value
    )
    assert "recipe" not in str(error.value)


def test_a_truncated_checkpoint_falls_back_to_the_one_before(
    whole, tiny, tmp_path, capsys, quiet, assert_same
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hgru_vision.training.session.conclude", lambda *_: None)
        quiet(tiny(), tmp_path)
    newest = tmp_path / "checkpoint.pt"
    newest.write_bytes(newest.read_bytes()[:1000])
    quiet(tiny(), tmp_path, resume=True)
    note = " ".join(capsys.readouterr().err.split())
    assert "checkpoint.pt is truncated or damaged" in note
    assert "going on from checkpoint.previous.pt" in note
    assert_same(whole[0], tmp_path)
