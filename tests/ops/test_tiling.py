import pytest
import torch

from hgru_vision.ops.tiling import Axis, plan


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("kernel_size", [1, 3, 7, 15, 41, 151])
@pytest.mark.parametrize("length", [1, 2, 17, 64, 97, 150, 301])
def test_tiles_cover_the_image_and_nothing_wraps_into_it(length, kernel_size, device):
    tiling = plan(length, 1, kernel_size, device)
    radius, axis = kernel_size // 2, tiling.y
    assert axis.valid * axis.tiles >= length
    assert axis.size >= axis.valid + (radius if axis.tiles == 1 else 2 * radius)


def test_a_tile_stays_small_unless_the_kernel_is_large():
    assert plan(1000, 1000, 15, "cpu").x.size == 64
    assert plan(1000, 1000, 151, "cpu").x.size == 512


def test_a_small_image_is_one_tile_with_its_margin_shared():
    assert plan(25, 25, 15, "cpu").x == Axis(size=32, valid=25, tiles=1)


def test_cut_and_paste_give_the_image_back():
    image = torch.arange(2 * 3 * 70 * 41.0).reshape(2, 3, 70, 41)
    tiling = plan(70, 41, 15, "cpu")
    tiles = tiling.cut(image)
    assert tiles.shape == (2, 3, tiling.y.tiles, tiling.x.tiles, tiling.y.size, tiling.x.size)
    assert torch.equal(tiling.paste(tiles[..., 7:, 7:]), image)
