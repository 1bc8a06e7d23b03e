import hashlib
from dataclasses import replace

import pytest

from hgru_vision.training.config import RunConfig, Source, Stage


def run(**changes):
    stage = Stage(sources=(Source(length=6),), images=64_000)
    return RunConfig(**({"model": "hgru", "stages": (stage,)} | changes))


def test_the_hash_is_of_what_changes_the_result():
    assert run().hash == run(recipe="other", checkpoint_every=7).hash
    others = [
        run(model="gru"),
        run(seed=1),
        run(data_seed=1),
        run(options={"timesteps": 4}),
        run(clip=5.0),
        run(warm_up=100),
        run(precision="tf32"),
        run(stages=(Stage(sources=(Source(length=9),), images=64_000),)),
    ]
    assert len({each.hash for each in (run(), *others)}) == len(others) + 1


def test_a_default_that_changes_would_change_what_old_hashes_mean():
    assert run().hash == "68070ace5435da56"


def test_repetitions_are_one_experiment():
    again = run(seed=1, data_seed=2, recipe="other", stuck_after=32, stop_when_stuck=True)
    assert again.experiment == run().experiment
    assert run(warm_up=1).experiment != run().experiment


def test_tuples_in_changes_survive_json():
    source = Source(preset="lra-128", changes={"margins": (2, 3)})
    config = run(stages=(Stage(sources=(source,), images=64),))
    assert RunConfig.from_json(config.to_json()) == config


def test_the_task_is_the_last_source_of_the_last_stage():
    first = Stage(sources=(Source(length=6),), images=64)
    last = Stage(sources=(Source(length=9), Source(length=14)), images=64)
    config = run(stages=(first, last))
    assert config.task.length == 14
    assert config.task.name == "paper-14"
    assert Source(path="files").name == "files"


def test_shares_are_equal_unless_given():
    assert Stage(sources=(Source(), Source()), images=1).shares == (1.0, 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Source(length=0), "length must be 1 or more; got 0"),
        (lambda: Stage(sources=(), images=1), "sources is empty; a stage needs one or more"),
        (
            lambda: Stage(sources=(Source(),), shares=(1, 2), images=1),
            "shares has 2 of 1 sources",
        ),
        (
            lambda: Stage(sources=(Source(),), shares=(0,), images=1),
            "shares must be greater than 0; got 0",
        ),
        (lambda: Stage(sources=(Source(),), images=0), "images must be 1 or more; got 0"),
        (
            lambda: Stage(sources=(Source(),), images=1, unique=0),
            "unique must be 1 or more; got 0",
        ),
        (
            lambda: Stage(sources=(Source(),), images=1, promote_at=1.5),
            "promote_at must be above 0 and at most 1; got 1.5",
        ),
        (
            lambda: Stage(sources=(Source(path="files"),), images=1, mask_weight=1.0),
            "mask_weight needs images that are drawn; files is a folder",
        ),
        (lambda: run(contractor=-1.0), "contractor must be 0 or more; got -1.0"),
        (
            lambda: Stage(sources=(Source(),), images=1, mask_weight=-1.0),
            "mask_weight must be 0 or more; got -1.0",
        ),
        (
            lambda: run(
                stages=(
                    Stage(sources=(Source(),), images=64, mask_weight=1.0),
                    Stage(sources=(Source(),), images=64),
                ),
                target="segmentation",
            ),
            "stages[0].mask_weight is for runs with target label; with segmentation every stage "
            "teaches masks",
        ),
        (lambda: run(stages=()), "stages is empty; a run needs one or more"),
        (lambda: run(batch=0), "batch must be 1 or more; got 0"),
        (lambda: run(checkpoint_every=0), "checkpoint_every must be 1 or more; got 0"),
        (lambda: run(seed=-1), "seed must be 0 or more; got -1"),
        (
            lambda: run(seed=2**64),
            "seed must be at most 2**63 - 1; got 18446744073709551616",
        ),
        (
            lambda: run(data_seed=2**63),
            "data_seed must be at most 2**63 - 1; got 9223372036854775808",
        ),
        (lambda: run(learning_rate=0), "learning_rate must be greater than 0; got 0.0"),
        (lambda: run(clip=-1), "clip must be greater than 0; got -1.0"),
        (lambda: run(warm_up=-1), "warm_up must be 0 or more; got -1"),
        (lambda: run(cool_down=-1), "cool_down must be 0 or more; got -1"),
        (lambda: run(stuck_after=0), "stuck_after must be 1 or more; got 0"),
        (lambda: run(full_rate_inputs=0), "full_rate_inputs must be 1 or more; got 0"),
        (
            lambda: Source(dataset="contours", preset="matched"),
            "preset is not for dataset contours; got 'matched'",
        ),
        (
            lambda: Source(dataset="bsds500", path="BSR", length=9),
            "length is not for dataset bsds500; got 9",
        ),
        (
            lambda: Source(dataset="bsds500"),
            "dataset bsds500 needs path, the folder of the data set",
        ),
        (
            lambda: Source(dataset="contours", path="files"),
            "path is not for dataset contours; got 'files'; files say themselves "
            "what they hold: leave dataset out",
        ),
        (
            lambda: Source(dataset="contours", changes={"length": 5}),
            "length is a field of the source itself; take it out of changes",
        ),
        (lambda: run(balance=True), 'balance is for pixels; it needs target="segmentation"'),
        (
            lambda: run(start_readout=False),
            "start_readout is given, but no start that it belongs to",
        ),
        (
            lambda: run(start_sha256="0" * 64),
            "start_sha256 is given, but no start that it belongs to",
        ),
        (
            lambda: run(batch=64_001),
            "stages[0].images is 64000, less than a batch, 64001",
        ),
        (
            lambda: run(stop_when_stuck=True, stuck_after=32, target="segmentation"),
            'stop_when_stuck needs target="label"; chance is not known for pixels',
        ),
        (
            lambda: Source(path="files", preset="matched"),
            "preset is not for files; got 'matched'; files says itself what it holds",
        ),
        (
            lambda: Source(path="files", changes={"canvas": 64}),
            "changes is not for files; got {'canvas': 64}; files says itself what it holds",
        ),
        (
            lambda: run(stop_when_stuck=True),
            "stop_when_stuck needs stuck_after, a number of images",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert message == str(error.value)


def test_a_wrong_type_is_refused_at_once():
    with pytest.raises(TypeError, match="batch must be a whole number; got '32'"):
        replace(run(), batch="32")


def test_an_unknown_dataset_is_refused():
    message = "dataset must be one of pathfinder, contours, bsds500; got 'mnist'"
    with pytest.raises(TypeError, match=message):
        Source(dataset="mnist")


def test_datasets_have_names():
    assert Source(dataset="contours", length=5).name == "contours-5"
    assert Source(dataset="bsds500", path="BSR").name == "bsds500"


def test_the_hash_says_which_weights_a_run_starts_from_and_not_where_they_lie(tmp_path):
    paths = [tmp_path / name for name in ("one.npz", "same.npz", "other.npz")]
    for path, content in zip(paths, (b"1", b"1", b"2"), strict=True):
        path.write_bytes(content)
    one, same, other = (run(start=str(path)) for path in paths)
    assert one.hash == same.hash and one.hash != other.hash and one.hash != run().hash
    assert one.start_sha256 == hashlib.sha256(b"1").hexdigest()
    again = RunConfig.from_json(one.to_json() | {"start": "gone.npz"})  # reads no file
    assert again.hash == one.hash


def test_stages_have_names():
    sources = Source(length=6), Source(dataset="contours", length=9)
    assert Stage(sources=sources, images=1).name == "paper-6+contours-9"
    lengths = tuple(Source(length=length) for length in (6, 9, 14))
    assert Stage(sources=lengths, images=1).name == "paper-6+9+14"
    folders = tuple(Source(path=path) for path in ("a", "b"))
    assert Stage(sources=folders, images=1).name == "a+b"
    assert Stage(sources=sources[1:], images=1, mask_weight=1.0).name == "contours-9 with masks"


def test_a_network_of_ones_own_is_known_by_its_file_and_not_by_where_it_lies(nets, tmp_path):
    first = run(model="nets.py:leaky")
    assert (first.reference, first.network) == ("nets.py:leaky", "leaky")
    assert first.model_sha256 == hashlib.sha256(nets.read_bytes()).hexdigest()
    (tmp_path / "elsewhere").mkdir()
    moved = nets.rename("elsewhere/nets.py")
    same = run(model=f"{tmp_path}/elsewhere/nets.py:leaky")
    assert (same.model, same.model_folder) == ("nets.py:leaky", f"{tmp_path}/elsewhere")
    assert same.hash == first.hash and same.experiment == first.experiment
    again = RunConfig.from_json(first.to_json())  # reads no file
    assert again == first and replace(same, seed=1).reference == same.reference
    moved.write_text("other")
    assert run(model="elsewhere/nets.py:leaky").hash != first.hash
    assert run().reference == run().network == "hgru"


@pytest.mark.parametrize(
    ("changes", "error", "text"),
    [
        (
            {"model": "nets.py"},
            ValueError,
            "model nets.py is a file; name its function: nets.py:NA",
        ),
        (
            {"model_sha256": "0" * 64},
            ValueError,
            "model hgru has no file, but its folder or sha256 is given",
        ),
        ({"model_folder": "mine"}, ValueError, "model hgru has no file, but its folder or sha256"),
        (
            {"model": "gone/nets.py:leaky"},
            FileNotFoundError,
            "no file gone/nets.py (from the network gone/nets.py:leaky)",
        ),
    ],
)
def test_what_is_no_network_is_refused(changes, error, text):
    with pytest.raises(error) as refused:
        run(**changes)
    assert text in str(refused.value)
