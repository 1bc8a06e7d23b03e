import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from hgru_vision.data.bsds_files import SPLIT_SIZES, find_root, read_image, read_pictures


@pytest.mark.parametrize("layout", ["matlab", "compact"])
def test_both_layouts_say_the_same(tmp_path, write_bsds, layout):
    root = write_bsds(tmp_path / layout, layout)
    pictures = read_pictures(root, "train", allow_partial=True)
    assert [picture.name for picture in pictures] == ["100", "101", "102"]
    assert [picture.shape for picture in pictures] == [(24, 36), (36, 24), (24, 36)]
    for number, picture in enumerate(pictures):
        maps = picture.annotations()
        assert maps.shape == (number + 2, *picture.shape) and maps.dtype == np.uint8
        middle = picture.shape[1] // 2
        for person, each in enumerate(maps):
            assert each[:, middle + person].all() and each.sum() == picture.shape[0]


def test_the_compact_files_hold_what_the_authors_files_hold(shared_data, tmp_path):
    bench = shared_data / "bsds500-bench" / "data"
    for name in ("images", "groundTruth"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "test").symlink_to(bench / name)
    compact = {picture.name: picture for picture in read_pictures(shared_data / "bsds500", "test")}
    assert len(compact) == SPLIT_SIZES["test"]
    theirs = read_pictures(tmp_path, "test", allow_partial=True)
    assert len(theirs) == 5
    for picture in theirs:
        np.testing.assert_array_equal(picture.annotations(), compact[picture.name].annotations())


def test_a_whole_split_needs_no_permission(tmp_path, write_bsds):
    root = write_bsds(tmp_path, split="val", shapes=((8, 9),) * SPLIT_SIZES["val"])
    assert len(read_pictures(root, "val")) == 100


@pytest.mark.parametrize("inside", ["", "data", "BSDS500/data", "BSR/BSDS500/data"])
def test_the_folder_is_found_inside_the_archive(tmp_path, inside):
    (tmp_path / inside / "images").mkdir(parents=True)
    assert find_root(tmp_path) == tmp_path / inside


def test_a_folder_that_holds_something_else_is_refused(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"nowhere is no folder; BSDS500 has images/\{train"
    ):
        find_root(tmp_path / "nowhere")
    with pytest.raises(FileNotFoundError, match="holds no folder 'images'; BSDS500 has"):
        find_root(tmp_path)
    (tmp_path / "images" / "train").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"neither .*groundTruth/train nor .*gt_train\.npz"):
        read_pictures(tmp_path, "train")
    (tmp_path / "groundTruth" / "train").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"images/train holds no image \(\*\.jpg\)"):
        read_pictures(tmp_path, "train", allow_partial=True)


def test_half_a_data_set_is_refused_by_name(tmp_path, write_bsds):
    root = write_bsds(tmp_path / "few")
    with pytest.raises(
        FileNotFoundError, match=r"holds 3 images; this split of BSDS500 has 200; .*allow_partial"
    ):
        read_pictures(root, "train")
    (root / "images/train/101.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"101 in .*gt_train.npz, but no image .*101\.jpg"):
        read_pictures(root, "train")
    assert len(read_pictures(root, "train", allow_partial=True)) == 2
    root = write_bsds(tmp_path / "matlab", "matlab")
    (root / "groundTruth/train/102.mat").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"102\.jpg has no annotations: no .*groundTruth/train/102\.mat"
    ):
        read_pictures(root, "train")


def test_damaged_annotations_are_named(tmp_path, write_bsds):
    root = write_bsds(tmp_path / "matlab", "matlab")
    path = root / "groundTruth/train/100.mat"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"100\.mat is not a ground truth of BSDS500, a cell"):
        read_pictures(root, "train", allow_partial=True)
    savemat(path, {"segs": np.zeros(3)})
    with pytest.raises(ValueError, match=r"100\.mat is not a ground truth .*'groundTruth'"):
        read_pictures(root, "train", allow_partial=True)
    cells = np.empty((1, 1), object)
    cells[0, 0] = {"Boundaries": np.zeros((2, 3, 4))}
    savemat(path, {"groundTruth": cells})
    with pytest.raises(ValueError, match=r"'Boundaries' must be pictures, got shape \(2, 3, 4\)"):
        read_pictures(root, "train", allow_partial=True)


def test_a_damaged_compact_file_is_named(tmp_path, write_bsds):
    root = write_bsds(tmp_path)
    path = root / "gt_train.npz"
    whole = path.read_bytes()
    with np.load(path) as file:
        arrays = dict(file)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"gt_train\.npz is not a whole \.npz file"):
        read_pictures(root, "train", allow_partial=True)
    np.savez(path, **{key: value for key, value in arrays.items() if key not in ("ids", "start")})
    with pytest.raises(ValueError, match=r"gt_train\.npz lacks ids, start; it should hold ids, sh"):
        read_pictures(root, "train", allow_partial=True)
    np.savez(path, **{**arrays, "packed": arrays["packed"][:4]})
    with pytest.raises(ValueError, match="is damaged: it lacks annotations of picture 101"):
        read_pictures(root, "train", allow_partial=True)
    np.savez(path, **{**arrays, "packed": arrays["packed"][:, :-1]})
    with pytest.raises(ValueError, match="is damaged: it lacks annotations of picture 100"):
        read_pictures(root, "train", allow_partial=True)
    np.savez(path, **{**arrays, "n_annot": arrays["n_annot"] * [1, 1, 0]})
    with pytest.raises(ValueError, match="is damaged: it lacks annotations of picture 102"):
        read_pictures(root, "train", allow_partial=True)


def test_images_that_do_not_fit_are_named(tmp_path, write_bsds):
    root = write_bsds(tmp_path)
    path = root / "images/train/100.jpg"
    Image.new("RGB", (24, 36)).save(path)
    with pytest.raises(ValueError, match=r"100\.jpg is 36x24 .*, its annotations are 24x36"):
        read_pictures(root, "train", allow_partial=True)
    path.write_text("no image")
    with pytest.raises(ValueError, match=r"100\.jpg is not an image: cannot identify"):
        read_pictures(root, "train", allow_partial=True)


def test_an_image_cut_short_is_named(tmp_path, write_bsds):
    path = write_bsds(tmp_path) / "images/train/100.jpg"
    assert read_image(path).shape == (24, 36, 3)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"100\.jpg is not a whole image: .*truncated"):
        read_image(path)
