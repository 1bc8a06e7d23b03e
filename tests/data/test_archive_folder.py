import pickle
import shutil

import numpy as np
import pytest
from PIL import Image

from hgru_vision.data.archive_folder import ArchiveFolder
from hgru_vision.data.readers import open_dataset
from hgru_vision.data.store import write

PARAMETERS = "1.8 6 2 5 2 3 1"


def make_archive(root, *, style, batches=2, images=3, size=(8, 6), segmentation=False):
    """Write an archive as the authors' program (numpy) or the Long Range Arena (text) has it."""
    random = np.random.default_rng(0)
    pixels, masks, labels = [], [], []
    (root / "metadata").mkdir(parents=True)
    for batch in range(batches):
        rows = []
        for kind in ("imgs", "seg") if segmentation else ("imgs",):
            (root / kind / str(batch)).mkdir(parents=True)
        for number in range(images):
            name = f"sample_{number}.png"
            pixels.append(random.integers(0, 256, size, dtype=np.uint8))
            masks.append(random.integers(0, 2, size, dtype=np.uint8))
            labels.append(1 if segmentation else int(random.integers(2)))
            Image.fromarray(pixels[-1]).save(root / "imgs" / str(batch) / name)
            if segmentation:
                Image.fromarray(masks[-1] * 255).save(root / "seg" / str(batch) / name)
                rows.append([f"imgs/{batch}", f"seg/{batch}", name, str(number)])
            else:
                rows.append([f"imgs/{batch}", name, str(number), str(labels[-1])])
            rows[-1] += PARAMETERS.split()
        path = root / "metadata" / f"{batch}.npy"
        if style == "text":
            path.write_text("".join(" ".join(row) + "\n" for row in rows))
        else:
            np.save(path, np.array(rows, dtype=style))
    return np.stack(pixels), np.stack(masks), np.array(labels)


@pytest.mark.parametrize("style", ["U", "S", "text"])
def test_archives_of_the_authors_and_of_the_arena(tmp_path, style):
    pixels, _, labels = make_archive(tmp_path, style=style, batches=11)
    np.save(tmp_path / "metadata" / "combined.npy", np.array([["again"] * 11]))
    archive = ArchiveFolder(tmp_path)
    assert len(archive) == 33
    np.testing.assert_array_equal(archive.batch(range(33)), pixels)  # batch 10 comes after 9
    np.testing.assert_array_equal(archive.labels(range(33)), labels)
    image, label = archive[-1]
    np.testing.assert_array_equal(image[0].numpy(), pixels[-1] / np.float32(255))
    assert label == labels[-1]
    with pytest.raises(ValueError, match="no segmentations: its metadata names none"):
        archive.segmentations([0])


@pytest.mark.parametrize("style", ["U", "text"])
def test_segmentation_archives(tmp_path, style):
    pixels, masks, _ = make_archive(tmp_path, style=style, segmentation=True)
    archive = pickle.loads(pickle.dumps(ArchiveFolder(tmp_path)))
    assert archive.describe()["target"] == "segmentation"
    np.testing.assert_array_equal(archive.batch(range(6)), pixels)
    np.testing.assert_array_equal(archive.segmentations(range(6)), masks)
    assert archive.labels(range(6)).tolist() == [1] * 6
    _, mask = archive[4]
    np.testing.assert_array_equal(mask[0].numpy(), masks[4])


@pytest.mark.parametrize("target", ["label", "segmentation"])
def test_our_png_format_is_such_an_archive(tmp_path, FakeSource, target):
    source = FakeSource(target=target)
    write(source, tmp_path, format="png", shard_size=10)
    archive, indices = ArchiveFolder(tmp_path), np.arange(23)
    np.testing.assert_array_equal(archive.batch(indices), source.batch(indices))
    np.testing.assert_array_equal(archive.labels(indices), source.labels(indices))
    if target == "segmentation":
        np.testing.assert_array_equal(archive.segmentations(indices), source.segmentations(indices))


def test_an_archive_can_be_written_as_shards(tmp_path):
    pixels, _, labels = make_archive(tmp_path / "archive", style="text")
    write(ArchiveFolder(tmp_path / "archive"), tmp_path / "shards")
    stored = open_dataset(tmp_path / "shards")
    np.testing.assert_array_equal(stored.batch(range(6)), pixels)
    np.testing.assert_array_equal(stored.labels(range(6)), labels)


def test_reduce_takes_the_mean_of_blocks(tmp_path):
    pixels, masks, _ = make_archive(tmp_path, style="U", segmentation=True)
    archive = ArchiveFolder(tmp_path, reduce=2)
    means = pixels.reshape(6, 4, 2, 3, 2).mean(axis=(2, 4))
    assert np.abs(archive.batch(range(6)) - means).max() <= 0.5
    half = masks.reshape(6, 4, 2, 3, 2).mean(axis=(2, 4)) >= 0.5
    np.testing.assert_array_equal(archive.segmentations(range(6)), half)
    assert archive.describe()["height"] == 4
    for reduce in (4, 3, 0, -1):
        message = f"reduce={reduce} does not divide the images of 8x6; 1 leaves"
        with pytest.raises(ValueError, match=message):
            ArchiveFolder(tmp_path, reduce=reduce)
    for reduce in (2.0, True):
        with pytest.raises(TypeError, match=f"reduce must be a whole number; got {reduce}"):
            ArchiveFolder(tmp_path, reduce=reduce)
    np.testing.assert_array_equal(
        ArchiveFolder(tmp_path, reduce=np.int64(2)).batch([0]), archive.batch([0])
    )


def test_the_parent_of_archives_is_refused_with_their_names(tmp_path):
    for name in ("curv_baseline", "curv_contour_length_9", "curv_contour_length_14"):
        make_archive(tmp_path / name, style="text")
    names = "curv_baseline, curv_contour_length_14, curv_contour_length_9"
    with pytest.raises(FileNotFoundError, match=f"no folder 'metadata'; .* one of them: {names}"):
        ArchiveFolder(tmp_path)
    message = "nowhere has no folder 'metadata'; images come with one that tells their labels"
    with pytest.raises(FileNotFoundError, match=message):
        ArchiveFolder(tmp_path / "nowhere")


def test_an_archive_without_rows_is_refused(tmp_path):
    (tmp_path / "metadata").mkdir()
    with pytest.raises(ValueError, match=r"metadata lists no image; it should hold 0.npy"):
        ArchiveFolder(tmp_path)


def test_an_archive_of_which_nothing_is_left_is_refused(tmp_path):
    make_archive(tmp_path, style="text")
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("imgs/*/*.png"))
    match = f"metadata lists no other images than the {len(names)} to exclude"
    with pytest.raises(ValueError, match=match):
        ArchiveFolder(tmp_path, exclude=names)


def test_a_folder_in_the_place_of_an_image_is_no_image(tmp_path):
    make_archive(tmp_path, style="text")
    (tmp_path / "imgs/1/sample_2.png").unlink()
    (tmp_path / "imgs/1/sample_2.png").mkdir()
    with pytest.raises(ValueError, match=r"1\.npy, line 3: .*sample_2.png is missing"):
        ArchiveFolder(tmp_path)


@pytest.mark.parametrize("what", ["missing", "empty"])
def test_a_lost_image_is_named_with_its_line_and_can_be_left_out(tmp_path, what):
    pixels, _, _ = make_archive(tmp_path, style="text")
    path = tmp_path / "metadata" / "1.npy"
    path.write_text("\n" + path.read_text())
    (tmp_path / "imgs/1/sample_2.png").unlink()
    if what == "empty":  # as the Long Range Arena's pathfinder32/curv_baseline has one
        (tmp_path / "imgs/1/sample_2.png").touch()
    message = rf"1\.npy, line 4: .*sample_2.png is {what}; .* exclude=\['imgs/1/sample_2.png'\]"
    with pytest.raises(ValueError, match=message):
        ArchiveFolder(tmp_path)
    archive = ArchiveFolder(tmp_path, exclude=["imgs/1/sample_2.png"])
    np.testing.assert_array_equal(archive.batch(range(len(archive))), pixels[:5])


def test_names_to_leave_out_must_be_there(tmp_path):
    make_archive(tmp_path, style="text")
    with pytest.raises(ValueError, match=r"exclude names 'imgs/sample', which .* does not list"):
        ArchiveFolder(tmp_path, exclude=["imgs/sample"])
    with pytest.raises(TypeError, match=r"exclude takes a list of names, such as \['imgs/1'\]"):
        ArchiveFolder(tmp_path, exclude="imgs/1")


def test_two_archives_of_one_name_are_told_apart(tmp_path):
    one, other = tmp_path / "a" / "data", tmp_path / "b" / "data"
    for root in (one, other):
        make_archive(root, style="text")
    assert ArchiveFolder(one).describe() == ArchiveFolder(other).describe()
    metadata = other / "metadata/0.npy"
    text = metadata.read_text()
    metadata.write_text(text.replace(" 1 1.8", " 0 1.8"))  # labels
    assert ArchiveFolder(one).describe() != ArchiveFolder(other).describe()
    metadata.write_text(text)
    Image.new("L", (300, 300), 7).save(other / "imgs/1/sample_0.png")
    assert ArchiveFolder(one).describe() != ArchiveFolder(other).describe()
    left = ArchiveFolder(one, exclude=["imgs/1/sample_0.png"])
    assert left.describe() != ArchiveFolder(one).describe()


def test_a_missing_folder_of_masks_is_named(tmp_path):
    make_archive(tmp_path, style="U", segmentation=True)
    shutil.rmtree(tmp_path / "seg/1")
    with pytest.raises(ValueError, match=r"1\.npy, line 1: .*seg/1/sample_0.png is missing"):
        ArchiveFolder(tmp_path)


def test_images_that_cannot_be_read_are_named(tmp_path):
    make_archive(tmp_path, style="U")
    path = tmp_path / "imgs/0/sample_1.png"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(
        ValueError, match=r"imgs/0/sample_1.png: \d+ bytes that are not a whole image"
    ):
        ArchiveFolder(tmp_path)[1]
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(path)
    with pytest.raises(ValueError, match=r"sample_1.png: 4x4 pixels, the first image has 8x6"):
        ArchiveFolder(tmp_path)[1]


def test_masks_for_some_images_only_are_refused(tmp_path):
    make_archive(tmp_path, style="text", segmentation=True)
    path = tmp_path / "metadata" / "1.npy"
    path.write_text(f"imgs/1 sample_0.png 0 1 {PARAMETERS}\n")
    with pytest.raises(ValueError, match="3 of 4 rows name a segmentation; an archive has one for"):
        ArchiveFolder(tmp_path)
