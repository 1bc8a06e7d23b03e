import pytest
import torch

from hgru_vision.circuits import HGRU, LESIONS, LesionedHGRU

MISSING = {
    "linear": ("mu", "kappa", "beta"),
    "quadratic": ("alpha", "omega"),
    "time_gain": ("eta",),
    "alpha": ("alpha",),
    "mu": ("mu",),
    "kappa": ("kappa",),
    "beta": ("beta",),
    "omega": ("omega",),
}


def test_every_lesion_has_a_name():
    assert {name: cls.lesioned for name, cls in LESIONS.items()} == MISSING


@pytest.mark.parametrize("name", LESIONS)
def test_a_lesion_is_the_full_layer_with_that_parameter_at_zero(name):
    full, lesioned = HGRU(3, 3, 3), LESIONS[name](3, 3, 3)
    x = torch.rand(2, 3, 7, 6, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        full.eta.copy_(torch.tensor([0.9, 1.2, 0.7]))
        if name != "time_gain":
            lesioned.eta.copy_(full.eta)
    assert not torch.allclose(lesioned(x), full(x))
    with torch.no_grad():
        for parameter in MISSING[name]:
            getattr(full, parameter).fill_(1.0 if parameter == "eta" else 0.0)
    assert torch.equal(lesioned(x), full(x))


@pytest.mark.parametrize("name", LESIONS)
def test_a_lesioned_parameter_is_not_trained_counted_or_saved(name):
    layer = LESIONS[name](3, 3, 4)
    gone = set(MISSING[name])
    assert gone.isdisjoint(dict(layer.named_parameters()))
    assert gone.isdisjoint(layer.state_dict())
    removed = sum(4 if each == "eta" else 3 for each in gone)
    expected = sum(p.numel() for p in HGRU(3, 3, 4).parameters()) - removed
    assert sum(p.numel() for p in layer.parameters()) == expected
    for each in gone:
        assert getattr(layer.double(), each).dtype == torch.float64


@pytest.mark.parametrize(("names", "shown"), [("alpha", "'alpha'"), (("w",), r"\('w',\)")])
def test_a_lesion_of_no_parameter_is_refused(names, shown):
    class Wrong(LesionedHGRU):
        lesioned = names

    text = f"Wrong.lesioned is {shown}; it must be a tuple of names out of u1, .*alpha, .*eta$"
    with pytest.raises(ValueError, match=text):
        Wrong(3, 3, 3)
