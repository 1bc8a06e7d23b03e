from hgru_vision.cli import main


def test_an_unknown_suite_is_refused(capsys):
    assert main(["bench", "pathfinders"]) == 2
    assert "no suite 'pathfinders'; there are pathfinder, contours, hgru" in capsys.readouterr().err
