"""The loop as a whole: what a run is, what it leaves behind, and what cannot be run."""

import json
import time

import pytest
import torch

from hgru_vision.training.checkpoint import load_run
from hgru_vision.training.config import Source, Stage
from hgru_vision.training.data import final_data
from hgru_vision.training.evaluate import evaluate
from hgru_vision.training.loop import train
from hgru_vision.training.result import Result


def test_a_run_leaves_its_files_and_a_result(whole, tiny):
    folder, result = whole
    assert result.outcome == "finished"
    assert [(point.batch, point.images) for point in result.curve] == [(5, 40), (10, 80)]
    assert result.images == 96
    assert result.accuracy == result.correct / 40
    assert result.alc == sum(point.accuracy for point in result.curve) / 2
    assert 0 <= result.waiting < 1
    assert result.parameters == sum(p.numel() for p in load_run(folder)[0].parameters())
    assert result.shortcut == {"accuracy": 0.9}
    assert json.loads((folder / "result.json").read_text()) == result.to_json()
    assert Result.from_json(result.to_json()) == result
    assert len((folder / "curve.jsonl").read_text().splitlines()) == 2
    assert load_run(folder)[1] == tiny()


def test_the_network_of_a_folder_is_the_one_that_was_judged(whole):
    folder, result = whole
    network, config = load_run(folder)
    assert not network.training
    assert evaluate(network, final_data(config)).correct == result.correct


def test_a_run_is_a_function_of_its_configuration(whole, tiny, tmp_path, quiet, assert_same):
    before = torch.get_rng_state()
    torch.manual_seed(99)
    moved = torch.get_rng_state()
    quiet(tiny(), tmp_path)
    assert torch.equal(torch.get_rng_state(), moved)
    torch.set_rng_state(before)
    assert_same(whole[0], tmp_path)


def test_a_run_may_be_evaluated_at_its_end_alone(whole, tiny, tmp_path, quiet, weights):
    """However rare evaluations are, room is made for the losses of a stage and no more."""
    result = quiet(tiny(evaluate_every=10**12), tmp_path, budget=None)
    assert (result.outcome, result.curve, result.alc) == ("finished", (), None)
    assert weights(tmp_path).keys() == weights(whole[0]).keys()


def test_another_seed_is_another_run(whole, tiny, tmp_path, quiet, weights):
    quiet(tiny(seed=1), tmp_path)
    there, here = weights(whole[0]), weights(tmp_path)
    assert any(not torch.equal(there[key], here[key]) for key in there)


def test_segmentation_is_trained_pixel_by_pixel(tiny, tmp_path, quiet):
    result = quiet(tiny(target="segmentation"), tmp_path)
    assert result.test_images == 40 * 32 * 32
    assert result.shortcut is None
    assert not result.stuck
    assert 0 <= result.overlap < 1
    assert result.interval is None
    network, config = load_run(tmp_path)
    found = evaluate(network, final_data(config))
    assert (result.correct, result.overlap) == (found.correct, pytest.approx(found.mean_overlap))


def test_files_are_trained_on_like_streams(tiny, tmp_path, quiet):
    from hgru_vision.data.store import write
    from hgru_vision.training.data import training_data

    streamed = training_data(tiny(), 0).sources[0]
    streamed.count = 200
    write(streamed, tmp_path / "files", shard_size=50)
    source = Source(path=str(tmp_path / "files"), length=3)
    result = quiet(tiny(stages=(Stage(sources=(source,), images=160),)), tmp_path / "run")
    assert result.images == 160
    assert result.shortcut is None


def test_lower_precision_and_channels_last_train(tiny, tmp_path, quiet):
    result = quiet(tiny(precision="bfloat16", channels_last=True), tmp_path)
    assert result.outcome == "finished"


def test_time_in_all_is_at_least_the_time_of_the_session(tiny, tmp_path, quiet):
    began = time.perf_counter()
    result = quiet(tiny(), tmp_path)
    assert 0 < result.seconds <= time.perf_counter() - began


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cuda_graph": True}, "cuda_graph needs a GPU; this run is on the cpu"),
        ({"model": "hgru_smal"}, "no model 'hgru_smal'"),
        ({"stages": (Stage(sources=(Source(preset="papr"),), images=8),)}, "no preset 'papr'"),
    ],
)
def test_what_cannot_be_run_is_refused(tiny, tmp_path, changes, message, quiet):
    with pytest.raises(ValueError, match=message):
        quiet(tiny(**changes), tmp_path / "run")


def test_a_gpu_that_is_not_there_is_refused(tiny, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU; the error is for those without")
    with pytest.raises(ValueError, match="device is cuda and torch sees no GPU; give cpu"):
        train(tiny(), tmp_path, device="cuda")


def test_two_trainings_in_one_folder_are_refused(tiny, tmp_path, quiet):
    from hgru_vision.data.durable import only_writer

    with only_writer(tmp_path), pytest.raises(BlockingIOError, match="another process writes to"):
        quiet(tiny(), tmp_path)
