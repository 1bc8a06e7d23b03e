import pytest

from hgru_vision.analysis.psychophysics_neighbours import read_path_angle, read_v1_gain

GAIN = "# made up\n# relation,x,monkey_MA,monkey_MB\n"
ANGLE = "# made up\n# duration_s,observer,angle,proportion_correct\n"


def write(tmp_path, text):
    file = tmp_path / "file.csv"
    file.write_text(text)
    return file


def test_gain_is_read_by_relation_and_monkey(tmp_path):
    text = "length_in_bars,3,1.5,1.4\nlength_in_bars,1,1,1\nrelative_colinear_distance,1.2,2,1.7\n"
    gain = read_v1_gain(write(tmp_path, GAIN + text))
    assert gain.by_length == {"MA": ((1, 1), (3, 1.5)), "MB": ((1, 1), (3, 1.4))}
    assert gain.by_distance == {"MA": ((1.2, 2.0),), "MB": ((1.2, 1.7),)}


def test_answers_are_read_by_observer_and_duration(tmp_path):
    text = "0.25,A,15,0.9\n0.25,A,0,1\n1.0,A,0,0.8\n"
    people = read_path_angle(write(tmp_path, ANGLE + text))
    assert people.by_observer == {("A", 0.25): ((0, 1), (15, 0.9)), ("A", 1.0): ((0, 0.8),)}


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_v1_gain, ANGLE + "0.25,A,15,0.9\n", "line 2: no column is called 'duration_s'"),
        (read_v1_gain, GAIN + "width,1,1,1\n", "line 3, column relation: 'width'; length_in_bars"),
        (read_v1_gain, GAIN + "length_in_bars,1,-1,1\n", "column monkey_MA: '-1'; a number, 0 or"),
        (
            read_path_angle,
            GAIN + "length_in_bars,1,1,1\n",
            "line 2: no column is called 'relation'",
        ),
        (read_path_angle, ANGLE + "0.25,A,200,0.9\n", "column angle: '200'; a number, from 0 to 1"),
        (read_path_angle, ANGLE + "0.25,A,0,9\n", "line 3, column proportion_correct: '9'; a numb"),
    ],
)
def test_a_wrong_file_is_refused_by_line_and_column(tmp_path, read, text, message):
    with pytest.raises(ValueError, match=r"file\.csv, .*" + message):
        read(write(tmp_path, text))


def test_the_digitised_files_are_read(shared_data):
    gain = read_v1_gain(shared_data / "reference" / "li2006-v1-gain.csv")
    assert [len(points) for points in gain.by_length.values()] == [5, 5]
    assert [len(points) for points in gain.by_distance.values()] == [5, 5]
    people = read_path_angle(shared_data / "reference" / "field1993-path-angle.csv")
    assert [len(points) for points in people.by_observer.values()] == [6] * 4
