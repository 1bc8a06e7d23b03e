from dataclasses import replace

import pytest

from hgru_vision.analysis.study import Network, studies
from hgru_vision.recipes import make_run
from hgru_vision.sweeps.ledger import LedgerRow


def one(rows):
    (study,) = studies(rows)
    return study


def test_recipes_and_tasks_do_not_meet(row):
    rows = [row(recipe="paper"), row(recipe="screen"), row(recipe="screen", preset="matched")]
    rows += [row(recipe="screen", changes={"canvas": 300}), row(recipe="screen", path="data/p14")]
    rows += [row(recipe="screen", target="segmentation")]
    names = [(study.recipe, study.task) for study in studies(rows)]
    assert names == [
        ("paper", "paper"),
        ("screen", "paper"),
        ("screen", "matched"),
        ("screen", "paper canvas=300"),
        ("screen", "data/p14"),
        ("screen", "paper segmentation"),
    ]
    folders = [study.folder for study in studies(rows)]
    assert folders[3:5] == ["screen-paper_canvas=300", "screen-data_p14"]
    assert studies(rows)[0].name == "paper recipe, paper Pathfinder"


def test_a_task_of_many_changes_has_a_short_name(row):
    changes = {"canvas": 32, "edge_margin": 3, "seed_radius": 5}
    first, second = studies([row(changes=changes), row(changes=changes | {"canvas": 33})])
    assert first.task.startswith("paper config ") and len(first.task) < 25
    assert first.task != second.task


def test_runs_of_a_cell_come_in_the_order_of_their_seeds(row):
    study = one([row(seed=2, accuracy=0.7), row(seed=0, accuracy=0.9), row(seed=1, accuracy=None)])
    cell = study.cells[Network("hgru"), 14]
    assert [each.config.seed for each in cell.rows] == [0, 1, 2]
    assert cell.best.accuracy == cell.best_value("accuracy") == 0.9
    assert cell.values("accuracy") == [0.9, 0.7]
    assert cell.mean_and_sd("accuracy")[0] == pytest.approx(0.8)
    assert (cell.failures.failed, cell.failures.runs) == (2, 3)
    assert cell.shortcut == 0.8


def test_a_cell_without_a_result(row):
    cell = one([row(accuracy=None, shortcut=None)]).cells[Network("hgru"), 14]
    assert cell.best is None and cell.best_value("alc") is None
    assert cell.mean_and_sd("alc") is None and cell.shortcut is None


def test_what_differs_beside_the_seed_makes_another_network(row):
    rows = [row(seed=0), row(seed=1), row(seed=0, options={"timesteps": 4})]
    rows += [row(seed=0, length=6)]
    study = one(rows)
    assert study.networks == [Network("hgru"), Network("hgru", "timesteps=4")]
    assert len(study.cells[Network("hgru"), 14].rows) == 2
    assert (Network("hgru"), 6) in study.cells


def test_other_images_are_a_repetition_and_another_learning_rate_is_not(row):
    assert one([row(data_seed=0), row(data_seed=1)]).networks == [Network("hgru")]
    assert one([row(checkpoint_every=1), row(seed=1)]).networks == [Network("hgru")]
    names = {each.variant for each in one([row(), row(learning_rate=1e-4)]).networks}
    assert names == {"learning_rate=0.001", "learning_rate=0.0001"}


def variants(*rows):
    return {each.variant for each in one(rows).networks}


def test_networks_are_named_by_the_fewest_fields_that_tell_them_apart(row):
    first, second = row(), row(learning_rate=1e-4, batch=64, clip=1.0)
    assert variants(first, second) == {"batch=32", "batch=64"}  # the shortest of the three
    third = row(learning_rate=1e-4, batch=64, clip=2.0)
    assert variants(first, second, third) == {"clip=None", "clip=1.0", "clip=2.0"}
    fourth, fifth = row(batch=64), row(learning_rate=1e-4)
    assert variants(first, second, fourth, fifth) == {
        "batch=32, learning_rate=0.001",
        "batch=64, learning_rate=0.0001",
        "batch=64, learning_rate=0.001",
        "batch=32, learning_rate=0.0001",
    }


def test_a_field_of_the_run_comes_before_those_of_its_stages(row):
    first, second = row(stages=4, full_rate_inputs=1875), row(stages=3)
    assert variants(first, second) == {"full_rate_inputs=1875", "full_rate_inputs=None"}
    first, second = row(preset="paper"), row(preset="paper", stages=2)
    assert variants(first, second) == {"images=640000", "images=320000"}


def test_what_a_run_began_from_is_named(row):
    rows = [
        row(length=length, start=f"hgru.pathfinder{length}", cool_down=length) for length in (6, 9)
    ]
    assert variants(*rows) == {"start=hgru.pathfinder6", "start=hgru.pathfinder9"}
    assert variants(rows[0]) == {""}


def test_what_a_few_fields_do_not_tell_apart_is_named_by_a_digest(row):
    changes = {"batch": 64, "clip": 1.0, "warm_up": 9, "cool_down": 9}
    rows = [row(), *(row(**{name: value}) for name, value in changes.items())]
    named = variants(*rows)
    assert len(named) == 5
    assert all(variant.startswith("config ") for variant in named)


def test_networks_come_in_the_order_of_the_paper_with_those_it_lacks_last(row):
    study = one([row("unet"), row("of_my_own"), row("gru"), row("hgru")])
    assert [each.model for each in study.networks] == ["hgru", "gru", "unet", "of_my_own"]


def test_missing_lengths_are_those_of_the_paper(row):
    study = one([row(length=9), row(length=20)])
    assert study.lengths == [6, 9, 14, 20]
    assert study.missing(Network("hgru")) == [6, 14]
    assert study.missing(Network("gru")) == study.lengths
    assert one([row(length=3)]).lengths == [3]  # another kind of task altogether


def test_models_that_were_not_run_stand_for_themselves(row):
    study = one([row("hgru"), row("hgru", batch=64)])
    found = study.of(["gru", "hgru"])
    assert found == [Network("gru"), Network("hgru", "batch=32"), Network("hgru", "batch=64")]


def test_a_study_knows_what_it_is_judged_by(row):
    labels, pixels = studies([row(), row(target="segmentation")])
    assert not labels.segmentation and pixels.segmentation
    assert labels.name_of_alc == "ALC"
    assert one([row(stages=2)]).name_of_alc == "ALC (last stage)"


def test_when_a_hopeless_run_is_given_up_makes_no_other_network(row):
    rows = [row(seed=0), row(seed=1, stuck_after=64_000, stop_when_stuck=True)]
    assert one(rows).networks == [Network("hgru")]


def test_the_shortcut_of_a_length_comes_from_any_of_its_runs(row):
    study = one([row("hgru", shortcut=None), row("gru", shortcut=0.85), row(length=6)])
    assert (study.shortcut(14), study.shortcut(6), study.shortcut(9)) == (0.85, 0.8, None)
    assert len(study.rows) == 3


def test_a_protocol_has_one_name_at_all_lengths(row):
    # Stages of a curriculum depend on the length; what differs at one length names the networks.
    result = row().result
    made = [make_run("curriculum", length=length) for length in (6, 9, 14)]
    made += [replace(made[-1], cool_down=4_000, stages=made[-1].stages[1:])]
    study = one([LedgerRow(config=config, result=result) for config in made])
    usual, other = Network("hgru", "cool_down=5000"), Network("hgru", "cool_down=4000")
    assert set(study.cells) == {(usual, 6), (usual, 9), (usual, 14), (other, 14)}


def test_a_mixture_is_named_by_its_lengths(row):
    result = row().result
    made = [make_run("curriculum", mixed=mixed) for mixed in (False, True)]
    study = one([LedgerRow(config=config, result=result) for config in made])
    assert study.networks == [Network("hgru"), Network("hgru", "lengths=3+6+9+14")]


def test_a_rate_that_differs_with_length_is_named(row):
    study = one([row(length=6, learning_rate=1e-4), row(length=9), row(length=14)])
    assert {network.variant for network in study.networks} == {
        "learning_rate=0.0001",
        "learning_rate=0.001",
    }


def test_parameters_are_those_of_the_runs(row):
    study = one([row(length=14)])
    (cell,) = study.cells.values()
    assert cell.parameters == cell.results[0].parameters


def test_networks_of_ones_own_have_short_names_that_tell_them_apart(row):
    def own(model, sha256):
        return row(model, model_sha256=sha256 * 64)

    (network,) = one([own("nets.py:leaky", "a")]).networks
    assert network == Network("nets.py:leaky")
    versions = one([own("nets.py:leaky", "a"), own("nets.py:leaky", "b")])
    assert [each.variant for each in versions.networks] == ["file=aaaaaaaa", "file=bbbbbbbb"]
    files = one([own("nets.py:leaky", "a"), own("more.py:leaky", "b"), own("nets.py:hgru", "a")])
    assert set(files.networks) == {
        Network("nets.py:leaky", "nets.py"),
        Network("more.py:leaky", "more.py"),
        Network("nets.py:hgru", "nets.py"),  # the catalogue has that name, too
    }
    assert one([row("hgru")]).networks == [Network("hgru")]
