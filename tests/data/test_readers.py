import contextlib
import pickle
import shutil
import threading

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from hgru_vision.data import readers
from hgru_vision.data.manifest import CorruptShardError
from hgru_vision.data.readers import ArchiveFolder, open_dataset
from hgru_vision.data.store import write

FORMATS = ("npy", "parquet", "png")


@pytest.fixture(params=FORMATS)
def format(request):
    return request.param


# -- Shards ----------------------------------------------------------------------------------------


def test_items_are_image_and_label(tmp_path, FakeSource, format):
    source = FakeSource()
    write(source, tmp_path, format=format, shard_size=10)
    dataset = open_dataset(tmp_path)
    assert len(dataset) == 23
    assert dataset.describe()["seed"] == 0
    for index in (0, 22, -1, -23):
        image, label = dataset[index]
        assert (image.dtype, tuple(image.shape)) == (torch.float32, (1, 9, 7))
        expected = source.batch(np.array([index % 23]))[0]
        np.testing.assert_array_equal(image[0].numpy(), expected / np.float32(255))
        assert type(label) is int
        assert label == source.labels(np.array([index % 23]))[0]


def test_items_are_image_and_mask(tmp_path, FakeSource, format):
    source = FakeSource(binary=False, target="segmentation")
    write(source, tmp_path, format=format, shard_size=10)
    image, mask = open_dataset(tmp_path)[12]
    assert (mask.dtype, mask.shape) == (torch.float32, image.shape)
    np.testing.assert_array_equal(mask[0].numpy(), source.segmentations(np.array([12]))[0])


def test_batches_may_repeat_and_be_empty(tmp_path, FakeSource, format):
    source = FakeSource()
    write(source, tmp_path, format=format, shard_size=10)
    dataset = open_dataset(tmp_path)
    indices = np.array([22, 3, 3, 11, 22, 0])
    np.testing.assert_array_equal(dataset.batch(indices), source.batch(indices))
    assert dataset.batch([]).shape == (0, 9, 7)
    assert dataset.labels([]).shape == (0,)


@pytest.mark.parametrize("context", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_read_the_same(tmp_path, FakeSource, context):
    write(FakeSource(), tmp_path, shard_size=10)
    dataset = open_dataset(tmp_path)
    dataset.batch([0, 11])  # open in the parent
    alone = torch.cat([images for images, _ in DataLoader(dataset, batch_size=4)])
    loader = DataLoader(dataset, batch_size=4, num_workers=2, multiprocessing_context=context)
    assert torch.equal(torch.cat([images for images, _ in loader]), alone)


def test_a_forked_process_opens_its_own_files(tmp_path, FakeSource, monkeypatch):
    write(FakeSource(), tmp_path)
    dataset = open_dataset(tmp_path)
    dataset.batch([0])
    mine = dataset._open[0]
    monkeypatch.setattr("os.getpid", lambda: -1)
    dataset.batch([0])
    assert dataset._open[0] is not mine


def test_it_pickles_without_its_files(tmp_path, FakeSource, format):
    write(FakeSource(), tmp_path, format=format, shard_size=10)
    dataset = open_dataset(tmp_path)
    before = dataset.batch(range(23))
    data = pickle.dumps(dataset)
    assert len(data) < 3000
    np.testing.assert_array_equal(pickle.loads(data).batch(range(23)), before)


def test_few_shards_are_open_at_once(tmp_path, FakeSource, monkeypatch):
    monkeypatch.setattr(readers, "OPEN_SHARDS", 3)
    source = FakeSource(20)
    write(source, tmp_path, shard_size=2)
    dataset = open_dataset(tmp_path)
    np.testing.assert_array_equal(dataset.batch(range(20)), source.batch(np.arange(20)))
    assert len(dataset._open) == 3


def test_open_shards_leave_file_descriptors_for_others():
    """Of 256, the fewest that a system allows; a shard with masks holds two."""
    assert 2 * readers.OPEN_SHARDS + 32 <= 256


def test_shards_are_kept_under_the_lock(tmp_path, FakeSource):
    write(FakeSource(), tmp_path, shard_size=10)
    dataset = open_dataset(tmp_path)

    class Shards(dict):
        def __setitem__(self, number, reader):
            assert dataset._lock.locked()
            super().__setitem__(number, reader)

    dataset._open = Shards()
    dataset.batch([0, 22])
    assert list(dataset._open) == [0, 2]


def test_two_threads_keep_to_the_limit(tmp_path, FakeSource, monkeypatch):
    monkeypatch.setattr(readers, "OPEN_SHARDS", 3)
    write(FakeSource(40), tmp_path, shard_size=1)
    dataset = open_dataset(tmp_path)
    meet, opened = threading.Barrier(2, timeout=5), dataset.layout.open

    def both_at_once(*given):
        with contextlib.suppress(threading.BrokenBarrierError):
            meet.wait(0.2)
        return opened(*given)

    monkeypatch.setattr(dataset.layout, "open", both_at_once)
    threads = [
        threading.Thread(target=lambda first=first: [dataset[i] for i in range(first, 8, 2)])
        for first in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(dataset._open) == 3


def test_wrong_indices_are_named(tmp_path, FakeSource):
    write(FakeSource(), tmp_path)
    dataset = open_dataset(tmp_path)
    for index in (23, -24):
        with pytest.raises(IndexError, match=f"index {index} is out of range: 23 items"):
            dataset[index]
    with pytest.raises(IndexError, match="index 18446744073709551615 is out of range: 23 items"):
        dataset.batch(np.array([2**64 - 1], np.uint64))
    with pytest.raises(TypeError, match=r"indices are float64 of shape \(1,\); a one-dimensional"):
        dataset.batch([0.5])
    with pytest.raises(TypeError, match=r"indices are bool of shape \(23,\); a one-dimensional"):
        dataset.batch(np.ones(23, bool))  # a choice, not the items 0 and 1


def test_masks_that_were_not_written_are_refused(tmp_path, FakeSource):
    write(FakeSource(), tmp_path)
    with pytest.raises(ValueError, match="no segmentations: it was written with target 'label'"):
        open_dataset(tmp_path).segmentations([0])


def test_an_incomplete_directory_is_refused_with_the_command(tmp_path, FakeSource, format):
    def stop(done):
        if done > 10:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        write(FakeSource(), tmp_path, format=format, shard_size=10, progress=stop)
    command = (
        rf"hgru generate pathfinder --length 14 --count 23 --seed 0 --split train --target label "
        rf"--format {format} --shard-size 10 --out {tmp_path}"
    )
    with pytest.raises(ValueError, match=rf"10 of 23 items. Resume with .*\({command}, and what"):
        open_dataset(tmp_path)
    partial = open_dataset(tmp_path, allow_partial=True)
    assert len(partial) == 10
    np.testing.assert_array_equal(partial.batch([9]), FakeSource().batch(np.array([9])))
    with pytest.raises(IndexError, match="index 10 is out of range: 10 items"):
        partial[10]


def test_damage_is_refused_on_opening(tmp_path, FakeSource, format):
    write(FakeSource(), tmp_path / "good", format=format, shard_size=10)
    name = {"npy": "images-00001.npy", "parquet": "shard-00001.parquet"}.get(
        format, "imgs/1/sample_3.png"
    )
    bad = tmp_path / "bad"
    for damage, what in (
        (lambda data: data[:-5], "truncated"),
        (lambda data: data + b"12345", "changed"),
        (lambda data: None, "missing"),
    ):
        shutil.copytree(tmp_path / "good", bad)
        data = damage((bad / name).read_bytes())
        (bad / name).unlink()
        if data is not None:
            (bad / name).write_bytes(data)
        with pytest.raises(CorruptShardError, match=f"{name}: {what}"):
            open_dataset(bad)
        shutil.rmtree(bad)


def test_a_foreign_shard_is_refused_on_opening(tmp_path, FakeSource):
    """Of the right length, so that its header alone tells."""
    write(FakeSource(), tmp_path, shard_size=10)
    path = tmp_path / "images-00001.npy"
    path.write_bytes(path.read_bytes().replace(b"|u1", b"|i1"))
    with pytest.raises(CorruptShardError, match=r"images-00001.npy: foreign: int8 array of shape"):
        open_dataset(tmp_path)


def test_a_changed_byte_is_found_by_verify_alone(tmp_path, FakeSource):
    write(FakeSource(), tmp_path)
    path = tmp_path / "images-00000.npy"
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    open_dataset(tmp_path)
    with pytest.raises(CorruptShardError, match=r"images-00000.npy: changed: its sha256"):
        open_dataset(tmp_path, verify=True)


def test_a_changed_listing_is_refused_on_opening(tmp_path, FakeSource):
    write(FakeSource(), tmp_path, format="png")
    path = tmp_path / "listing" / "0.tsv"
    path.write_text(path.read_text().replace("sample_1.png", "sample_2.png", 1))
    with pytest.raises(CorruptShardError, match=r"listing/0.tsv: changed: its sha256"):
        open_dataset(tmp_path)


# -- Archives --------------------------------------------------------------------------------------

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
