import pytest
import torch

from hgru_vision.circuits import (
    HGRU,
    ConvGRU,
    ConvGRU2L,
    HGRUBatchNorm,
    HGRUNoLinear,
    HGRUNonnegative,
    HGRUNoQuadratic,
    HGRUNoTimeGain,
    HGRUReleased,
)
from hgru_vision.circuits.equilibrium import EquilibriumHGRU
from hgru_vision.models import create_model
from hgru_vision.models.catalogue import CATALOGUE
from hgru_vision.models.filters import released_bank
from hgru_vision.models.stages import PoolFirstReadout, Readout
from hgru_vision.papers.linsley2018 import HGRU_PARAMETERS

CIRCUITS = {
    "hgru": (HGRU, 8),
    "hgru_6": (HGRU, 6),
    "hgru_4": (HGRU, 4),
    "hgru_no_linear": (HGRUNoLinear, 8),
    "hgru_no_quadratic": (HGRUNoQuadratic, 8),
    "hgru_no_time_gain": (HGRUNoTimeGain, 8),
    "gru": (ConvGRU, 8),
    "gru_2l": (ConvGRU2L, 8),
    "hgru_bn": (HGRUBatchNorm, 8),
    "hgru_nonnegative": (HGRUNonnegative, 8),
    "hgru_released": (HGRUReleased, 8),
    "hgru_crbp": (EquilibriumHGRU, 8),
}


FIXED = ("hgru_6", "hgru_4", "hgru_crbp")  # the number of time-gains is not a keyword


def test_every_recurrent_network_is_here():
    names = [entry.name for entry in CATALOGUE.values() if entry.module == "recurrent"]
    assert names == list(CIRCUITS)


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_circuit_is_the_papers(name):
    circuit = create_model(name).features
    kind, timesteps = CIRCUITS[name]
    assert type(circuit) is kind
    assert (circuit.channels, circuit.kernel_size, circuit.timesteps) == (25, 15, timesteps)


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_circuit_starts_as_it_does_alone(name):
    kind, timesteps = CIRCUITS[name]
    alone = kind(timesteps=timesteps, generator=torch.Generator().manual_seed(3)).state_dict()
    within = create_model(name, seed=3).features.state_dict()
    assert all(torch.equal(within[key], value) for key, value in alone.items())


def test_the_hgru_network_is_its_circuit_the_filters_and_the_readout():
    filters = 25 * 7 * 7
    readout = 25 * 2 + (2 + 2) + (2 * 2 + 2)
    assert CATALOGUE["hgru"].parameters == HGRU_PARAMETERS + filters + readout == 75_843


@pytest.mark.parametrize("name", [n for n in CIRCUITS if n not in FIXED])
def test_the_number_of_steps_can_be_chosen(name):
    network = create_model(name, timesteps=2)
    assert network.features.timesteps == 2
    assert network(torch.zeros(2, 1, 32, 32)).shape == (2, 2)


def test_the_steps_towards_the_fixed_point_can_be_chosen():
    assert create_model("hgru_crbp", steps=20).features.steps == 20


def test_no_step_at_all_is_refused():
    with pytest.raises(ValueError, match="timesteps is 0; it must be 1 or more"):
        create_model("hgru", timesteps=0)


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_drive_is_halved_unless_said_otherwise(name):
    assert create_model(name).input.gain == (1.0 if name == "hgru_released" else 0.5)
    assert create_model(name, drive_gain=2.0).input.gain == 2.0


@pytest.mark.parametrize("name", [*CIRCUITS, "hgru_small", "contour_hgru"])
def test_the_way_of_computing_can_be_chosen_and_changes_no_starting_value(name):
    chosen, usual = create_model(name, backend="reference"), create_model(name)
    assert (chosen.features.backend, usual.features.backend) == ("reference", "auto")
    assert all(map(torch.equal, chosen.parameters(), usual.parameters()))


def test_an_unknown_way_of_computing_is_refused():
    with pytest.raises(ValueError, match="backend is 'fastest'; choose one of auto, reference"):
        create_model("hgru", backend="fastest")


def test_the_time_gain_can_start_as_in_the_released_code():
    usual, theirs = create_model("hgru"), create_model("hgru", least_time_gain=0)
    assert torch.equal(usual.features.eta, torch.ones(8))
    assert 0 <= theirs.features.eta.min() < 0.5 < theirs.features.eta.max() <= 1
    assert torch.equal(usual.features.w(), theirs.features.w())
    near = create_model("hgru", least_time_gain=0.9).features.eta
    assert 0.9 <= near.min() < near.max() <= 1


@pytest.mark.parametrize("name", ["hgru", "hgru_small", "hgru_released"])
def test_the_time_gain_can_start_anywhere(name):
    low = create_model(name, least_time_gain=-0.5, most_time_gain=0.5).features.eta
    assert -0.5 <= low.min() < 0 < low.max() <= 0.5
    assert low.requires_grad
    same = create_model(name, least_time_gain=0.25, most_time_gain=0.25).features.eta
    assert torch.equal(same, torch.full_like(same, 0.25))
    own = create_model(name).features.eta
    most = {"hgru_released": {"least_time_gain": 0.0, "most_time_gain": 1.0}}
    assert torch.equal(create_model(name, **most.get(name, {})).features.eta, own)


@pytest.mark.parametrize("name", ["hgru", "hgru_small", "hgru_released"])
def test_a_state_can_start_mostly_new(name):
    usual, new = create_model(name), create_model(name, mostly_new=True)
    drive = torch.zeros(1, usual.features.channels, 1, 1)  # leaves the gates at their biases
    with torch.no_grad():
        mix, mix_new = (each.features.step(drive, drive, 0).g2 for each in (usual, new))
    if name == "hgru_released":  # there the gate is of what is old
        mix, mix_new = 1 - mix, 1 - mix_new
    assert mix.max() < 0.5 < mix_new.min()
    torch.testing.assert_close(mix_new, 1 - mix)
    differ = [
        key
        for key, value in usual.state_dict().items()
        if not torch.equal(value, new.state_dict()[key])
    ]
    assert differ == ["features.b2"]


@pytest.mark.parametrize("name", ["hgru", "hgru_small"])
def test_the_readout_can_be_that_of_the_released_code(name):
    usual, theirs = create_model(name), create_model(name, pool_first=True)
    assert type(usual.readout) is Readout
    assert type(theirs.readout) is type(create_model("hgru_released").readout) is PoolFirstReadout
    assert torch.equal(usual.features.w(), theirs.features.w())


def test_a_readout_that_pools_first_is_not_made_anew():
    usual, asked = create_model("hgru_released"), create_model("hgru_released", pool_first=True)
    assert torch.equal(usual.readout.decide.weight, asked.readout.decide.weight)


def test_the_released_network_has_the_released_filters_and_a_bias():
    network = create_model("hgru_released")
    assert torch.equal(network.input.weight, released_bank())
    assert torch.equal(network.input.bias, torch.zeros(25))


@pytest.mark.parametrize("name", ["least_time_gain", "most_time_gain"])
@pytest.mark.parametrize("value", [-2.5, 2.5])
def test_a_time_gain_that_is_none_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}; it must be from -2 to 2"):
        create_model("hgru", **{name: value})


def test_a_least_time_gain_above_the_most_is_refused():
    message = r"least_time_gain is 1\.0, more than most_time_gain, 0\.5"
    with pytest.raises(ValueError, match=message):
        create_model("hgru", most_time_gain=0.5)
