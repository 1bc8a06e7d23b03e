import numpy as np

from hgru_vision.data.epochs import shuffled


def test_an_order_is_whole_and_its_own():
    orders = [tuple(shuffled(np.arange(i, i + 100), 100, seed=3)) for i in (0, 100)]
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert orders[0] != orders[1]
    assert tuple(shuffled(np.arange(100), 100, seed=4)) != orders[0]
    assert shuffled(np.array([7, 107, 8]), 100, seed=3).tolist() == [
        orders[0][7], orders[1][7], orders[0][8],
    ]  # fmt: skip


def test_the_order_never_changes():
    assert shuffled(np.arange(6), 6, seed=0).tolist() == [0, 2, 1, 5, 4, 3]
