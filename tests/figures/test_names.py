from hgru_vision.analysis.study import Network
from hgru_vision.figures.names import BEYOND, EVERY, MAIN, SUPPLEMENT, display, short
from hgru_vision.models.catalogue import CATALOGUE


def test_every_network_is_in_a_panel_and_none_is_invented():
    shown = [model for models in EVERY.values() for model in models]
    assert sorted(shown) == sorted(CATALOGUE)
    named = {model for panels in (MAIN, SUPPLEMENT, BEYOND) for m in panels.values() for model in m}
    assert named == set(CATALOGUE)


def test_the_papers_panels():
    assert [len(models) for models in MAIN.values()] == [7, 5, 5, 5, 3, 3]
    assert MAIN["Recurrent"][0] == "hgru" and MAIN["Recurrent"][-1] == "gru"
    assert SUPPLEMENT["Smaller U-Net"] == ("unet", "unet_half", "unet_fifth", "unet_tenth")


def test_names_are_for_people_and_differ():
    names = [display(Network(model)) for model in CATALOGUE]
    assert len(set(names)) == len(names)
    assert not any("_" in name for name in names)
    assert display(Network("hgru_6")) == "hGRU, 6 steps"
    assert display(Network("highway_3")) == "highway (3L)"
    assert display(Network("unet_tenth")) == "U-Net (1/10)"
    assert display(Network("of_my_own")) == "of_my_own"
    assert (
        short(Network("ff_nonlocal_1", "batch=64"), "Feedforward, 1 layer") == "non-local, batch=64"
    )
    assert short(Network("unet"), "Per-pixel") == "U-Net"
