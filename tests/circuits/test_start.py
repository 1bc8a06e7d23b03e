import torch

from hgru_vision.circuits.start import as_generator, chronos, xavier_kernel, xavier_vector


def test_a_generator_is_passed_on_or_made_of_seed_zero():
    generator = torch.Generator().manual_seed(5)
    assert as_generator(generator) is generator
    assert as_generator(None).initial_seed() == 0


def test_chronos_spreads_over_the_steps():
    times = torch.exp(-chronos(10_000, 8, as_generator(None)))
    assert 1 <= times.min() < 1.01
    assert 6.99 < times.max() <= 7
    torch.testing.assert_close(times.mean(), torch.tensor(4.0), rtol=0.02, atol=0)


def test_xavier_bounds():
    kernel = xavier_kernel(100, 100, fan=12, generator=as_generator(None))
    assert 0.499 < kernel.abs().max() <= 0.5
    vector = xavier_vector(599, as_generator(None))
    assert vector.shape == (599, 1, 1)
    assert 0.099 < vector.abs().max() <= 0.1
