import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from hgru_vision.sweeps.launch import Job, Outcome
from hgru_vision.sweeps.status import status_table
from hgru_vision.training.files import write_curve
from hgru_vision.training.result import Point, Result

RESULT = Result(
    outcome="finished", accuracy=0.75, correct=3, test_images=4, alc=None, stuck=False, curve=(),
    images=64, seconds=1.0, images_per_second=64.0, waiting=0.0, peak_memory=1, parameters=1,
    device="cpu", versions={},
)  # fmt: skip


def text_of(outcomes):
    console = Console(width=120, file=io.StringIO())
    console.print(status_table(outcomes))
    return console.file.getvalue()


def test_boundaries_are_told_apart_by_their_measure(row):
    made = row("contour_hgru", dataset="bsds500", path="BSR", target="segmentation")
    job = Job.under(Path("runs"), made.config)
    assert "bsds500, pixel AUC" in text_of([Outcome(job=job, state="done", result=made.result)])


def test_runs_are_counted_by_network_task_and_state(small_config):
    def outcome(seed, state, **keywords):
        changes = {} if seed < 10 else {"model": "hgru", "target": "label"}
        job = Job.under(Path("runs"), small_config(seed, **changes))
        return Outcome(job=job, state=state, **keywords)

    text = text_of(
        [
            outcome(0, "done", result=RESULT),
            outcome(1, "done", result=replace(RESULT, accuracy=0.85)),
            outcome(2, "diverged", result=replace(RESULT, outcome="diverged", accuracy=None)),
            outcome(10, "unfinished"),
            outcome(11, "failed", error="RuntimeError: no [bold] memory"),
        ]
    )
    lines = text.splitlines()
    words = [line.replace("│", " ").replace("┃", " ").split() for line in lines]
    assert words[1][:7] == ["recipe", "network", "task", "done", "diverged", "failed", "unfinished"]
    assert ["small", "gru", "paper-3,", "pixels", "2", "1", "80.0%", "85.0%"] in words
    assert ["small", "hgru", "paper-3", "1", "1"] in words
    assert ["runs", "2", "1", "1", "1"] in words
    assert lines[-1].startswith("hgru-small-paper-3-seed11-")
    assert lines[-1].endswith(": RuntimeError: no [bold] memory")
    assert "missing" not in text and "busy" not in text


def test_runs_that_have_begun_tell_how_far_they_are(small_config, tmp_path):
    (first,) = small_config().stages
    longer = replace(first.sources[0], length=4)
    config = small_config(stages=(first, replace(first, sources=(longer,))))
    jobs = [Job.under(tmp_path / name, config) for name in ("new", "old")]
    point = Point(stage=1, batch=8, images=1_280, loss=0.6, accuracy=0.625, seconds=1.0)
    jobs[1].folder.mkdir(parents=True)
    write_curve(jobs[1].folder, [replace(point, stage=0, images=640, accuracy=0.5), point])
    outcomes = [Outcome(job=jobs[0], state="busy"), Outcome(job=jobs[1], state="unfinished")]
    *_, new, old = text_of(outcomes).splitlines()
    assert new == f"{jobs[0].name}: not evaluated yet"
    whole = sum(stage.images for stage in config.stages)
    assert old == f"{jobs[1].name}: 1,280 of {whole} images, 62.5% of paper-4"
    assert "of paper-4" not in text_of([Outcome(job=jobs[1], state="missing")])


def test_a_network_of_ones_own_has_a_short_name(small_config, nets):
    job = Job.under(Path("runs"), small_config(model="nets.py:pixels", options={}))
    text = text_of([Outcome(job=job, state="missing")])
    assert "pixels" in text and "nets.py" not in text
