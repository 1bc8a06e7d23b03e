import json
import os
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import pytest

from hgru_vision.sweeps import jsonl
from hgru_vision.sweeps.ledger import (
    LedgerRow,
    LedgerWarning,
    append,
    check_portable,
    executed_otherwise,
    read_ledger,
)
from hgru_vision.training.config import RunConfig, Source, Stage
from hgru_vision.training.result import Point, Result

RESULT = Result(
    outcome="finished",
    accuracy=0.123456789,
    correct=1234,
    test_images=10_000,
    alc=2 / 3,
    stuck=True,
    curve=(Point(stage=0, batch=10, images=320, loss=0.69314718, accuracy=0.5, seconds=1.0),),
    images=320,
    seconds=12.3456789,
    images_per_second=26.0,
    waiting=0.01,
    peak_memory=1 << 30,
    parameters=75_000,
    device="cpu",
    versions={"torch": "2.13.0"},
    shortcut={"accuracy": 0.98765432, "probe": "all"},
)


def config(seed=0, **source):
    stages = (Stage(sources=(Source(**source),), images=320),)
    return RunConfig(model="hgru", stages=stages, seed=seed, learning_rate=1.23456789e-5)


def row(seed=0, **changes):
    return LedgerRow(config=config(seed), result=RESULT, **changes)


def test_a_row_comes_back_as_it_was_written(tmp_path):
    ledger = tmp_path / "new" / "ledger.jsonl"
    rows = [row(seed) for seed in range(3)]
    for each in rows:
        append(ledger, each)
    assert read_ledger(ledger) == rows
    assert [each.hash for each in rows] == [config(seed).hash for seed in range(3)]


def test_a_line_has_the_stated_keys_and_rounded_results(tmp_path):
    append(tmp_path / "a.jsonl", row(written="2026-01-01T00:00:00+00:00"))
    line = json.loads((tmp_path / "a.jsonl").read_text())
    assert list(line) == ["schema", "hash", "config", "result", "written"]
    assert line["schema"] == 1
    assert line["result"]["accuracy"] == 0.123457
    assert line["result"]["curve"][0]["loss"] == 0.693147
    assert line["result"]["shortcut"] == {"accuracy": 0.987654, "probe": "all"}
    assert line["config"]["learning_rate"] == 1.23456789e-5  # what was asked for stays exact


def test_the_time_of_writing_is_universal():
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", row().written)


def test_a_folder_is_read_file_by_file(tmp_path):
    append(tmp_path / "b.jsonl", row(1))
    append(tmp_path / "a.jsonl", row(2))
    (tmp_path / "notes.txt").write_text("not a ledger")
    assert [each.config.seed for each in read_ledger(tmp_path)] == [2, 1]


def test_no_ledger_is_an_error_that_names_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no ledger .*none\.jsonl; `hgru sweep` writes"):
        read_ledger(tmp_path / "none.jsonl")


def test_an_empty_folder_and_an_empty_file_have_no_rows(tmp_path):
    assert read_ledger(tmp_path) == []
    (tmp_path / "a.jsonl").touch()
    assert read_ledger(tmp_path) == []


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_half_written_last_row_is_passed_over_and_then_removed(tmp_path, kept):
    ledger = tmp_path / "a.jsonl"
    append(ledger, row(0))
    whole = ledger.read_bytes()
    ledger.write_bytes(whole + whole[:kept].removesuffix(b"}"))
    with pytest.warns(LedgerWarning, match=r"a\.jsonl:2: half-written row passed over"):
        assert len(read_ledger(ledger)) == 1
    append(ledger, row(1))
    assert [each.config.seed for each in read_ledger(ledger)] == [0, 1]
    assert ledger.read_bytes().startswith(whole)


def test_a_half_written_only_row_is_removed_too(tmp_path):
    ledger = tmp_path / "a.jsonl"
    ledger.write_bytes(b'{"schema": 1, "ha')
    append(ledger, row(1))
    assert len(read_ledger(ledger)) == 1


def test_a_long_half_written_row_is_removed_whole(tmp_path):
    ledger = tmp_path / "a.jsonl"
    append(ledger, row(0))
    with ledger.open("ab") as file:
        file.write(b'{"' + b"x" * 200_000)
    append(ledger, row(1))
    assert [each.config.seed for each in read_ledger(ledger)] == [0, 1]


def test_a_whole_last_row_that_lost_its_line_end_is_kept(tmp_path):
    ledger = tmp_path / "a.jsonl"
    append(ledger, row(0))
    ledger.write_bytes(ledger.read_bytes().rstrip(b"\n"))
    assert len(read_ledger(ledger)) == 1
    append(ledger, row(1))
    assert [each.config.seed for each in read_ledger(ledger)] == [0, 1]


def test_of_the_same_run_twice_the_row_written_last_counts(tmp_path):
    old, new = row(written="2026-01-01T00:00:00+00:00"), row(written="2026-01-02T00:00:00+00:00")
    for name, first, second in (("a", old, new), ("b", new, old)):
        ledger = tmp_path / f"{name}.jsonl"
        append(ledger, first)
        append(ledger, second)
        with pytest.warns(LedgerWarning, match=rf"{name}\.jsonl:2: run {new.hash} is there before"):
            assert read_ledger(ledger) == [new]


def test_a_row_is_written_once_were_another_writer_a_moment_faster(tmp_path, monkeypatch):
    ledger, lock = tmp_path / "a.jsonl", jsonl._lock

    def lock_after_the_other(descriptor):
        monkeypatch.setattr(jsonl, "_lock", lock)
        append(ledger, row(1), once=True)
        lock(descriptor)

    append(ledger, row(0))
    monkeypatch.setattr(jsonl, "_lock", lock_after_the_other)
    append(ledger, row(1), once=True)
    assert [each.config.seed for each in read_ledger(ledger)] == [0, 1]
    assert ledger.read_text().count("\n") == 2


def test_of_two_rows_of_one_second_the_later_line_counts(tmp_path):
    time = "2026-01-01T00:00:00+00:00"
    rows = [
        LedgerRow(config=config(), result=replace(RESULT, correct=number), written=time)
        for number in (1, 2)
    ]
    for each in rows:
        append(tmp_path / "a.jsonl", each)
    with pytest.warns(LedgerWarning, match="is there before"):
        assert read_ledger(tmp_path) == rows[1:]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"schema": 2}, "schema is 2; this version reads 1"),
        ({"extra": 0}, "a row has schema, hash, config, result, written; 'extra' differs"),
        ({"written": 3}, "written must be a time such as 20.*; got 3"),
        ({"hash": "0" * 16}, "hash is '0+', but that of its config is .* changed by hand"),
        ({"config": {"modell": "hgru"}}, "modell is not a field of RunConfig"),
        ({"result": {}}, "outcome is missing; Result needs it"),
    ],
)
def test_a_wrong_row_is_named_by_file_and_line(tmp_path, change, text):
    ledger = tmp_path / "a.jsonl"
    append(ledger, row(0))
    with ledger.open("a") as file:
        file.write(json.dumps(row(1).to_json() | change) + "\n")
    append(ledger, row(2))
    with pytest.raises(ValueError, match=rf"a\.jsonl:2 is not a row of a ledger: .*{text}"):
        read_ledger(ledger)


@pytest.mark.parametrize("line", ["not JSON", "", '{"schema": 1', "[1]"])
def test_a_corrupt_line_in_the_middle_is_named(tmp_path, line):
    ledger = tmp_path / "a.jsonl"
    ledger.write_text(line + "\n")
    append(ledger, row(0))
    with pytest.raises(ValueError, match=r"a\.jsonl:1 is not a row of a ledger") as error:
        read_ledger(ledger)
    assert ("the line is empty; remove it" in str(error.value)) == (line == "")


def test_a_row_with_a_path_of_one_machine_is_refused():
    with pytest.raises(ValueError, match=r"path /data/x means nothing on another machine"):
        LedgerRow(config=config(path="/data/x"), result=RESULT)
    check_portable(config(path="data/x"))
    begun = replace(config(), start="/runs/x", start_sha256="0" * 64)
    with pytest.raises(ValueError, match=r"path /runs/x means nothing on another machine"):
        check_portable(begun)
    check_portable(replace(begun, start="runs/x"))


def test_a_row_that_does_not_fit_leaves_the_ledger_as_it_was(tmp_path, monkeypatch):
    ledger = tmp_path / "a.jsonl"
    append(ledger, row(0))
    before, write = ledger.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:40]))
    with pytest.raises(OSError, match=r"a\.jsonl took 40 bytes of a row's \d+"):
        append(ledger, row(1))
    assert ledger.read_bytes() == before


def test_a_file_system_without_locks_is_written_to_all_the_same(tmp_path, monkeypatch):
    import errno
    import fcntl

    def refuse(number):
        def lock(*_):
            raise OSError(number, "refused")

        monkeypatch.setattr(fcntl, "flock", lock)

    refuse(errno.ENOLCK)
    append(tmp_path / "a.jsonl", row(0))
    assert len(read_ledger(tmp_path)) == 1
    refuse(errno.EIO)
    with pytest.raises(OSError, match="refused"):
        append(tmp_path / "a.jsonl", row(1))


ROWS_EACH = 12


def write_many(ledger, number):
    versions = {"padding": "x" * 20_000}  # rows longer than a pipe's or a page's atomic size
    for seed in range(ROWS_EACH):
        big = LedgerRow(
            config=config(1000 * number + seed), result=replace(RESULT, versions=versions)
        )
        append(ledger, big)


def test_sixteen_processes_append_at_once(tmp_path):
    ledger = tmp_path / "a.jsonl"
    ledger.write_bytes(b'{"half')
    with ProcessPoolExecutor(16, mp_context=get_context("forkserver")) as pool:
        list(pool.map(write_many, [ledger] * 16, range(16)))
    seeds = [each.config.seed for each in read_ledger(ledger)]
    assert sorted(seeds) == [
        1000 * number + seed for number in range(16) for seed in range(ROWS_EACH)
    ]


def test_a_row_says_which_file_a_network_has_and_not_where_it_lies(nets, tmp_path):
    made = replace(config(), model=f"{tmp_path}/nets.py:leaky")
    path = tmp_path / "a.jsonl"
    append(path, LedgerRow(config=made, result=RESULT))
    assert str(tmp_path) not in path.read_text()
    nets.unlink()
    (row,) = read_ledger(path)
    assert (row.hash, row.config.model) == (made.hash, "nets.py:leaky")
    assert row.config.model_sha256 == made.model_sha256


def test_rows_are_counted_that_differ_in_how_a_step_is_executed_alone():
    runs = [config(seed) for seed in range(4)]
    changes = [{}, {"cuda_graph": True}, {"cuda_graph": True}, {"compile": True}]
    rows = [
        LedgerRow(config=replace(run, **change), result=RESULT)
        for run, change in zip(runs, changes, strict=True)
    ]
    assert executed_otherwise(runs, rows) == {("cuda_graph=true",): 2, ("compile=true",): 1}
    compiled = [replace(run, compile=True) for run in runs[:2]]
    found = executed_otherwise(compiled, rows)
    assert found == {("compile=false",): 1, ("compile=false", "cuda_graph=true"): 1}
    assert not executed_otherwise([replace(run, batch=16) for run in runs], rows)
