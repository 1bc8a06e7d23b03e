import io

from rich.console import Console

from hgru_vision.data.progress import progress_bar
from hgru_vision.data.store import write


def test_it_shows_count_rate_and_time_left(tmp_path, FakeSource):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with progress_bar(23, description="Pathfinder", console=console) as progress:
        write(FakeSource(), tmp_path, shard_size=5, progress=progress)
    text = screen.getvalue()
    for words in ("Pathfinder", "23/23", "images/s", "time left"):
        assert words in text


def test_it_is_off_where_there_is_no_terminal():
    with progress_bar(23, console=Console(file=io.StringIO())) as progress:
        assert progress is None
