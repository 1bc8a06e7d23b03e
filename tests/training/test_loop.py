"""The loop as a whole: what a run is, and what interruptions must not change.

Above 400 lines: all of it goes through `train`, with the same few helpers.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hgru_vision.recipes.quick import SMALL
from hgru_vision.training.checkpoint import load_checkpoint, load_run
from hgru_vision.training.config import Source, Stage
from hgru_vision.training.data import final_data
from hgru_vision.training.evaluate import evaluate
from hgru_vision.training.loop import DivergedError, train
from hgru_vision.training.outcome import Measured
from hgru_vision.training.result import Result
from hgru_vision.training.session import Session


def quiet(config, folder, **keywords):
    return train(config, folder, progress=False, device="cpu", **keywords)


def weights(folder):
    return load_file(folder / "weights.safetensors")


def assert_same(first: Path, second: Path):
    """Bit-equal weights and curve (but for the time that it took)."""
    there, here = weights(first), weights(second)
    assert there.keys() == here.keys()
    assert all(torch.equal(there[key], here[key]) for key in there)
    curves = [(folder / "curve.jsonl").read_text().splitlines() for folder in (first, second)]
    points = [[json.loads(line) | {"seconds": 0} for line in lines] for lines in curves]
    assert points[0] == points[1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny):
    """Train a tiny run without interruption."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hgru_vision.training.outcome._shortcut", lambda _: {"accuracy": 0.9})
        result = quiet(tiny(), folder)
    return folder, result


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


def test_a_run_is_a_function_of_its_configuration(whole, tiny, tmp_path):
    before = torch.get_rng_state()
    torch.manual_seed(99)
    moved = torch.get_rng_state()
    quiet(tiny(), tmp_path)
    assert torch.equal(torch.get_rng_state(), moved)
    torch.set_rng_state(before)
    assert_same(whole[0], tmp_path)


def test_another_seed_is_another_run(whole, tiny, tmp_path):
    quiet(tiny(seed=1), tmp_path)
    there, here = weights(whole[0]), weights(tmp_path)
    assert any(not torch.equal(there[key], here[key]) for key in there)


def test_stopped_after_every_batch_it_ends_the_same(whole, tiny, tmp_path):
    sessions = 0
    while quiet(tiny(), tmp_path, resume=True, budget=0) is None:
        sessions += 1
        assert load_checkpoint(tmp_path)["position"]["batches"] == min(sessions, 12)
        if sessions == 12:
            break
    quiet(tiny(), tmp_path, resume=True)
    assert_same(whole[0], tmp_path)


def signal_after(monkeypatch, batches, *numbers):
    """Send this process signals when a run has had so many batches."""
    keep = Session.keep

    def keep_and_signal(session, loss):
        keep(session, loss)
        if session.position.batches == batches:
            for number in numbers:
                os.kill(os.getpid(), number)

    monkeypatch.setattr(Session, "keep", keep_and_signal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_a_checkpoint(whole, tiny, tmp_path, monkeypatch, number):
    handler = signal.getsignal(number)
    with monkeypatch.context() as patch:
        signal_after(patch, 7, number)
        assert quiet(tiny(), tmp_path) is None
    assert signal.getsignal(number) is handler
    assert load_checkpoint(tmp_path)["position"]["batches"] == 7
    quiet(tiny(), tmp_path, resume=True)
    assert_same(whole[0], tmp_path)


def test_a_second_interrupt_does_not_wait(tiny, tmp_path, monkeypatch):
    signal_after(monkeypatch, 7, signal.SIGINT, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        quiet(tiny(), tmp_path)
    assert load_checkpoint(tmp_path)["position"]["batches"] == 4


def test_a_signal_that_is_ignored_stays_so(tiny, tmp_path, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        signal_after(monkeypatch, 7, signal.SIGINT)
        assert quiet(tiny(), tmp_path).outcome == "finished"
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_it_runs_outside_the_main_thread(tiny, tmp_path):
    found = []
    thread = threading.Thread(target=lambda: found.append(quiet(tiny(), tmp_path, budget=0)))
    thread.start()
    thread.join()
    assert found == [None]


CHILD = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
import hgru_vision.training.outcome as outcome
outcome._shortcut = lambda _: None
from hgru_vision.training.config import RunConfig
from hgru_vision.training.loop import train
import json
config = RunConfig.from_json(json.loads(Path(sys.argv[1]).read_text()))
print("ready", flush=True)
train(config, Path(sys.argv[2]), resume=True, progress=False, device="cpu")
"""


def killed_run(config, folder: Path, moments) -> int:
    """Train in processes that are killed after so many seconds; give how many kills there were."""
    plan = folder.with_suffix(".json")
    plan.write_text(json.dumps(config.to_json()))
    command = [sys.executable, "-c", CHILD, str(plan), str(folder)]
    kills = 0
    for moment in (*moments, None):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout.readline() == b"ready\n"
            try:
                status = child.wait(timeout=moment)
            except subprocess.TimeoutExpired:
                child.kill()
                kills += 1
            else:
                assert status == 0
    return kills


@pytest.mark.slow
def test_killed_at_ten_random_moments_it_ends_the_same(tiny, tmp_path):
    config = tiny(
        stages=(Stage(sources=(SMALL,), images=8 * 400),), checkpoint_every=3, evaluate_every=20
    )
    assert killed_run(config, tmp_path / "whole", []) == 0
    draw = random.Random(0)
    kills = killed_run(config, tmp_path / "killed", [draw.uniform(0.1, 2.0) for _ in range(10)])
    assert kills == 10
    assert_same(tmp_path / "whole", tmp_path / "killed")


class Killed(BaseException):
    """What nothing catches, like a kill."""


@pytest.mark.parametrize("moment", range(4))
def test_killed_while_a_file_is_replaced_it_ends_the_same(
    whole, tiny, tmp_path, monkeypatch, moment
):
    """The second checkpoint takes three renames, and `moment` says before which the kill comes."""
    replace_file, calls = os.replace, []

    def die(source, target):
        if "checkpoint" in str(target):
            calls.append(target)
        if len(calls) == 3 + moment:
            raise Killed
        replace_file(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", die)
        with pytest.raises(Killed):
            quiet(tiny(), tmp_path)
    quiet(tiny(), tmp_path, resume=True)
    assert_same(whole[0], tmp_path)


def test_a_finished_run_is_not_trained_again(whole, tiny, monkeypatch):
    folder, result = whole
    monkeypatch.setattr("hgru_vision.training.loop._train_stage", None)
    assert quiet(tiny(), folder, resume=True) == result


def test_a_folder_in_use_is_refused_without_resume(whole, tiny):
    with pytest.raises(FileExistsError, match="holds a run; resume it, or give another folder"):
        quiet(tiny(), whole[0])


def test_another_configuration_is_refused_naming_the_fields(whole, tiny):
    other = Stage(sources=(replace(SMALL, length=4),), images=96)
    with pytest.raises(ValueError) as error:
        quiet(tiny(stages=(other,), data_seed=3, recipe="other"), whole[0], resume=True)
    assert "stages[0].sources[0].length: 3 there, 4 here; data_seed: 0 there, 3 here" in str(
        error.value
    )
    assert "recipe" not in str(error.value)


def test_a_truncated_checkpoint_falls_back_to_the_one_before(whole, tiny, tmp_path, capsys):
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


def test_a_stage_ends_when_it_is_learnt_and_the_next_goes_on(tiny, tmp_path):
    stages = (
        Stage(sources=(SMALL,), images=96, promote_at=0.1),
        Stage(sources=(replace(SMALL, length=4), SMALL), shares=(2, 1), images=48),
    )
    result = quiet(tiny(stages=stages), tmp_path)
    assert [(point.stage, point.batch) for point in result.curve] == [(0, 5), (1, 10)]
    assert result.images == 8 * (5 + 6)
    assert result.alc == result.curve[1].accuracy
    stopped = tmp_path / "stopped"
    while quiet(tiny(stages=stages), stopped, resume=True, budget=0) is None:
        if load_checkpoint(stopped)["position"]["batches"] == 11:
            break
    quiet(tiny(stages=stages), stopped, resume=True)
    assert_same(tmp_path, stopped)


def test_segmentation_is_trained_pixel_by_pixel(tiny, tmp_path):
    result = quiet(tiny(target="segmentation"), tmp_path)
    assert result.test_images == 40 * 32 * 32
    assert result.shortcut is None
    assert not result.stuck
    assert 0 <= result.overlap < 1
    assert result.interval is None
    network, config = load_run(tmp_path)
    found = evaluate(network, final_data(config))
    assert (result.correct, result.overlap) == (found.correct, pytest.approx(found.mean_overlap))


def test_files_are_trained_on_like_streams(tiny, tmp_path):
    from hgru_vision.data.store import write
    from hgru_vision.training.data import training_data

    streamed = training_data(tiny(), 0).sources[0]
    streamed.count = 200
    write(streamed, tmp_path / "files", shard_size=50)
    source = Source(path=str(tmp_path / "files"))
    result = quiet(tiny(stages=(Stage(sources=(source,), images=160),)), tmp_path / "run")
    assert result.images == 160
    assert result.shortcut is None


def test_a_loss_that_is_not_finite_stops_the_run(tiny, tmp_path):
    config = tiny(learning_rate=1e30, clip=None, checkpoint_every=1)
    with pytest.raises(DivergedError) as error:
        quiet(config, tmp_path)
    text = str(error.value)
    assert "the loss is nan at batch" in text
    assert "Try clip the gradient (clip=5), a smaller learning_rate or another seed" in text
    result = Result.from_json(json.loads((tmp_path / "result.json").read_text()))
    assert (result.outcome, result.accuracy, result.test_images) == ("diverged", None, 0)
    if (tmp_path / "checkpoint.pt").exists():
        kept = load_checkpoint(tmp_path)["network"]
        assert all(value.isfinite().all() for value in kept.values())
    with pytest.raises(DivergedError):  # it is not taken for finished
        quiet(config, tmp_path, resume=True)


def test_the_batch_that_went_wrong_is_named_and_the_checkpoint_before_it_kept(
    tiny, tmp_path, monkeypatch
):
    keep = Session.keep

    def spoil(session, loss):
        keep(session, loss * float("inf") if session.position.batches == 6 else loss)

    monkeypatch.setattr(Session, "keep", spoil)
    with pytest.raises(DivergedError, match=r"the loss is inf at batch 7 \(56 images\)"):
        quiet(tiny(), tmp_path)
    assert load_checkpoint(tmp_path)["position"]["batches"] == 4


def test_stuck_is_told_once_with_what_to_try(tiny, tmp_path, capsys):
    config = tiny(learning_rate=1e-9, stuck_after=40, evaluation_images=64)
    result = train(config, tmp_path, device="cpu")
    text = " ".join(capsys.readouterr().err.split())
    assert text.count("At chance after 40 images: loss") == 1
    assert "The ledger has no run like it" in text
    assert "another --seed" in text
    assert (result.stuck, result.outcome) == (True, "finished")
    assert len(result.curve) == 2


def test_a_stuck_run_stops_if_it_is_told_to_and_is_over(tiny, tmp_path):
    stage = Stage(sources=(SMALL,), images=96, promote_at=0.94)
    config = tiny(
        stages=(stage, stage),
        learning_rate=1e-9,
        stuck_after=40,
        stop_when_stuck=True,
        evaluation_images=64,
    )
    result = quiet(config, tmp_path)
    assert (result.images, result.stuck, result.outcome) == (40, True, "stuck")
    assert result.accuracy == result.correct / 40
    assert result.alc is None  # it never came to its last stage
    assert quiet(config, tmp_path, resume=True) == result


def test_a_stage_is_judged_by_its_own_images(tiny, tmp_path, monkeypatch):
    """The first stage is learnt; the second, at chance, is told after as many images of its own."""
    from hgru_vision.training import session

    found = iter([0.9, 0.5, 0.5, 0.5])
    monkeypatch.setattr(session, "measure", lambda *_, **__: Measured(
        correct=round(1000 * next(found)), count=1000, overlap=None))  # fmt: skip
    first = Stage(sources=(SMALL,), images=96, promote_at=0.8)
    last = Stage(sources=(SMALL,), images=160)
    config = tiny(stages=(first, last), stuck_after=80, stop_when_stuck=True)
    result = quiet(config, tmp_path)
    points = [(point.stage, point.batch, point.accuracy) for point in result.curve]
    assert points == [(0, 5, 0.9), (1, 10, 0.5), (1, 15, 0.5)]
    assert (result.outcome, result.alc) == ("stuck", 0.5)


def test_a_stage_whose_images_run_out_is_gone_on_from(tiny, tmp_path):
    stage = Stage(sources=(SMALL,), images=48, promote_at=1.0)
    result = quiet(tiny(stages=(stage, stage), learning_rate=1e-9, stuck_after=40), tmp_path)
    assert [point.stage for point in result.curve] == [0, 1]
    assert (result.images, result.outcome) == (96, "finished")


def test_the_learning_rate_of_a_resumed_run_goes_on_rising_and_falls(tiny, tmp_path):
    config = tiny(warm_up=9, cool_down=4)
    quiet(config, tmp_path / "whole")
    for _ in range(12):
        quiet(config, tmp_path / "parts", resume=True, budget=0)
    quiet(config, tmp_path / "parts", resume=True)
    assert_same(tmp_path / "whole", tmp_path / "parts")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cuda_graph": True}, "cuda_graph needs a GPU; this run is on the cpu"),
        ({"model": "hgru_smal"}, "no model 'hgru_smal'"),
        ({"stages": (Stage(sources=(Source(preset="papr"),), images=8),)}, "no preset 'papr'"),
    ],
)
def test_what_cannot_be_run_is_refused(tiny, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        quiet(tiny(**changes), tmp_path / "run")


def test_a_gpu_that_is_not_there_is_refused(tiny, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU; the error is for those without")
    with pytest.raises(ValueError, match="device is cuda and torch sees no GPU; give cpu"):
        train(tiny(), tmp_path, device="cuda")


def test_two_trainings_in_one_folder_are_refused(tiny, tmp_path):
    from hgru_vision.data.durable import only_writer

    with only_writer(tmp_path), pytest.raises(BlockingIOError, match="another process writes to"):
        quiet(tiny(), tmp_path)


def test_lower_precision_and_channels_last_train(tiny, tmp_path):
    result = quiet(tiny(precision="bfloat16", channels_last=True), tmp_path)
    assert result.outcome == "finished"


def test_time_in_all_is_at_least_the_time_of_the_session(tiny, tmp_path):
    began = time.perf_counter()
    result = quiet(tiny(), tmp_path)
    assert 0 < result.seconds <= time.perf_counter() - began
