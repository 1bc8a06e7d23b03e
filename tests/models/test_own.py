import pytest
import torch

from hgru_vision.models.own import make_own


def test_it_is_made_with_its_options_under_the_seed(nets):
    before = torch.get_rng_state()
    first, again = (make_own("nets.py:leaky", {"channels": 3}, seed=5) for _ in range(2))
    other = make_own("nets.py:leaky", {"channels": 3}, seed=6)
    assert torch.equal(torch.get_rng_state(), before)
    assert first.drive.weight.shape == (3, 1, 5, 5)
    assert torch.equal(first.drive.weight, again.drive.weight)
    assert not torch.equal(first.drive.weight, other.drive.weight)


def test_what_a_file_draws_when_it_is_run_is_the_seeds_too(nets):
    nets.write_text("import torch\nGAIN = torch.rand(1)\n"
                    "def net():\n    return torch.nn.ParameterList([GAIN])\n")  # fmt: skip
    first, again = (make_own("nets.py:net", {}, seed=5)[0] for _ in range(2))
    assert torch.equal(first, again)


def test_a_class_is_a_function_that_makes_one(nets):
    assert make_own("nets.py:Leaky", {"channels": 2}).decide.in_features == 2


@pytest.mark.parametrize(
    ("name", "options", "error", "text"),
    [
        (
            "leaky",
            {"steps": 3},
            TypeError,
            "nets.py:leaky does not take the run's options {'steps': 3}: got an unexpected keyword "
            "argument 'steps'; it takes (channels=4)",
        ),
        (
            "Leaky",
            {},
            TypeError,
            "nets.py:Leaky does not take the run's options {}: missing a required argument: "
            "'channels'; it takes (channels)",
        ),
        (
            "long",
            {},
            ValueError,
            "nets.py:long fails at nets.py:30: RuntimeError: one; it must return a torch.nn.Module",
        ),
        ("silent", {}, ValueError, "nets.py:silent fails at nets.py:24: AssertionError: no reason"),
        ("number", {}, TypeError, "nets.py:number returned int, not a torch.nn.Module"),
        ("lekay", {}, ValueError, "nets.py defines no function 'lekay'; it has Leaky, leaky, pix"),
    ],
)
def test_what_makes_no_network_is_told_in_a_line(nets, name, options, error, text):
    with nets.open("a") as file:
        file.write("\ndef silent():\n    assert False\n\ndef number():\n    return 3\n")
        file.write("\ndef long():\n    raise RuntimeError('one\\ntwo')\n")
    with pytest.raises(error) as refused:
        make_own(f"./nets.py:{name}", options)
    assert text in str(refused.value) and "\n" not in str(refused.value)


def test_a_file_that_cannot_be_run_is_named_with_its_line(nets):
    nets.write_text("import torch\nimport nosuchmodule\n")
    with pytest.raises(
        ImportError, match=r"^nets\.py:2 cannot be run: ModuleNotFoundError: No mod"
    ):
        make_own("nets.py:leaky", {})
