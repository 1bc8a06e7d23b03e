import io

import numpy as np
import pytest
from PIL import Image

from hgru_vision.data.archive import Row, decode_png, encode_png, metadata_rows, read_metadata


def test_png_round_trip_is_exact_and_repeatable():
    image = np.random.default_rng(0).integers(0, 256, (13, 7), dtype=np.uint8)
    data = encode_png(image)
    assert data == encode_png(image)
    np.testing.assert_array_equal(decode_png(data, "x"), image)


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "P"])
def test_gray_comes_from_any_mode(mode):
    image = np.array([[0, 255], [255, 0]], np.uint8)
    stream = io.BytesIO()
    Image.fromarray(image).convert(mode).save(stream, "PNG")
    np.testing.assert_array_equal(decode_png(stream.getvalue(), "x"), image)


def test_a_png_of_16_bits_is_refused_not_clipped():
    stream = io.BytesIO()
    Image.fromarray(np.array([[0, 300], [65535, 0]], np.uint16)).save(stream, "PNG")
    with pytest.raises(ValueError, match=r"x\.png: 16 bits a pixel; images of 8 are read"):
        decode_png(stream.getvalue(), "x.png")


def test_every_truncated_png_is_refused():
    data = encode_png(np.random.default_rng(0).integers(0, 256, (9, 9), dtype=np.uint8))
    for length in range(len(data)):
        message = rf"x.png: {length} bytes that are not a whole image" if length else "x.png: empty"
        with pytest.raises(ValueError, match=message):
            decode_png(data[:length], "x.png")


def test_a_flipped_bit_of_a_png_is_refused_or_harmless():
    image = np.random.default_rng(0).integers(0, 256, (9, 9), dtype=np.uint8)
    data, refused = encode_png(image), 0
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            np.testing.assert_array_equal(decode_png(bytes(damaged), "x.png"), image)
        except ValueError as error:
            assert str(error) == f"x.png: {len(data)} bytes that are not a whole image"
            refused += 1
    assert refused > 7 * len(data)


def test_rows_have_the_authors_columns(tmp_path):
    config = {"continuity": 1.8, "length": 14, "distractor_length": 4, "paddle_length": 2.5}
    config |= {"thickness": 1.0, "margin": 1.5}
    rows = metadata_rows(3, [1, 0], config, segmentation=False)
    assert rows.dtype.str.startswith("<U")
    assert " ".join(rows[1]) == "imgs/3 sample_1.png 1 0 1.8 14 4 2.5 1.0 1.5 nan"
    np.save(tmp_path / "3.npy", rows)
    assert read_metadata(tmp_path / "3.npy")[1] == Row(2, "imgs/3/sample_1.png", None, 0)
    rows = metadata_rows(3, [1, 0], config, segmentation=True)
    assert " ".join(rows[1]) == "imgs/3 seg/3 sample_1.png 1 1.8 14 4 2.5 1.0 1.5 nan 0"
    np.save(tmp_path / "3.npy", rows)
    mask = "seg/3/sample_1.png"
    assert read_metadata(tmp_path / "3.npy")[1] == Row(2, "imgs/3/sample_1.png", mask, 0)


def test_a_margin_is_told_where_there_is_one():
    for margins, column in ((3,), "3"), ((2, 3), "nan"):
        (row,) = metadata_rows(0, [1], {"margins": margins}, segmentation=False)
        assert row[9] == column


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("imgs/0 sample_0.png 0 1\nimgs/0 sample_1.png 1", r"line 2: 3 columns \('imgs/0 sample_1"),
        ("imgs/0 sample_0.png 0 2", "line 1: label '2'; 0 and 1 are known"),
        ("imgs/0 sample_0.png 0 1.8", "line 1: label '1.8'; 0 and 1 are known"),
        ("../x sample_0.png 0 1", "line 1: '../x/sample_0.png' lies outside the archive"),
        ("imgs/0 /etc seg.png 0", "line 1: '/etc/seg.png' lies outside the archive"),
    ],
)
def test_unreadable_rows_are_named(tmp_path, text, message):
    path = tmp_path / "0.npy"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"0\.npy, {message}"):
        read_metadata(path)


def test_pickles_are_never_loaded(tmp_path):
    path = tmp_path / "0.npy"
    np.save(path, np.array([["imgs/0", 1]], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"0.npy: not an array of strings; pickled objects are n"):
        read_metadata(path)


@pytest.mark.parametrize("header", [b"{'descr':'(u'}", b"{'descr': [", b"[[[[[[[[[[[["])
def test_damaged_headers_are_refused(tmp_path, header):
    path = tmp_path / "0.npy"
    path.write_bytes(np.lib.format.MAGIC_PREFIX + bytes([1, 0, len(header), 0]) + header)
    with pytest.raises(ValueError, match=r"0.npy: not an array of strings"):
        read_metadata(path)


@pytest.mark.parametrize(
    ("array", "what"),
    [(np.zeros((3, 11)), r"float64 array of shape \(3, 11\)"), (np.array(["a"]), r"<U1 .*\(1,\)")],
)
def test_arrays_of_another_kind_are_refused(tmp_path, array, what):
    path = tmp_path / "0.npy"
    np.save(path, array)
    with pytest.raises(ValueError, match=f"0.npy: {what}; metadata is a two-dimensional array"):
        read_metadata(path)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "0.npy"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"neither a .npy file nor text"):
        read_metadata(path)
