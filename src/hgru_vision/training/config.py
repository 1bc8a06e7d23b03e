"""What a run is: everything that its result is a function of."""

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from hgru_vision.papers import linsley2018
from hgru_vision.references import find_file, is_reference
from hgru_vision.training.fields import check_types, from_json, require, to_json, without_defaults

__all__ = [
    "FULL_RATE_INPUTS",
    "WITHOUT_EFFECT",
    "DatasetName",
    "Precision",
    "RunConfig",
    "Source",
    "Stage",
    "Target",
]

DatasetName = Literal["pathfinder", "contours", "bsds500"]
Target = Literal["label", "segmentation"]
Precision = Literal["float32", "tf32", "bfloat16"]

# For `RunConfig.full_rate_inputs`: a third of the learning rate for the horizontal kernels of 25
# channels. With the whole of it most networks at length 6 never left chance, with activity that
# fed itself; with a tenth none had that, but they learnt too slowly (docs/stuck.md).
FULL_RATE_INPUTS = 1_875

# Fields of a run that do not change the network which comes out. Where the weights that it starts
# from lie, or the file of its network, is one of them: what they are, their check sums say.
WITHOUT_EFFECT = ("recipe", "checkpoint_every", "start", "model_folder")

# Runs that differ in these besides are repetitions of one experiment.
_OF_ONE_RUN = ("seed", "data_seed", "stuck_after", "stop_when_stuck")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where images come from: drawn on the fly, or files.

    Parameters
    ----------
    dataset
        "pathfinder"; "contours", the Synthetic Contours Dataset; or "bsds500", natural images.
    preset
        As `hgru_vision.Pathfinder` takes it.
    length
        Paddles in a path or in a contour.
    changes
        Other fields of the preset's configuration, such as ``{"canvas": 300}``; of
        `ContourConfig`, such as ``{"shear": 0.2}``; or of `BoundarySettings`, such as
        ``{"crop": 96}``.
    path
        A folder that `hgru generate` wrote, instead of a preset. Its last items are held out for
        the evaluations and for the test. For "bsds500" the folder of the data set: it is trained on
        its training pictures, evaluated on "val" and tested on "test".

    Examples
    --------
    >>> Source(length=9).name, Source(dataset="contours", length=5).name
    ('paper-9', 'contours-5')
    """

    dataset: DatasetName = "pathfinder"
    preset: str = "paper"
    length: int = linsley2018.PATH_LENGTHS[-1]
    changes: dict[str, Any] = field(default_factory=dict)
    path: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "changes", to_json(self.changes))
        check_types(self)
        if self.length < 1:
            raise ValueError(f"length must be 1 or more; got {self.length}")
        if self.dataset != "pathfinder":
            self._refuse("preset")
        if self.dataset == "pathfinder" and self.path is not None:
            for name in ("preset", "changes"):
                self._refuse(name, f"{self.path} says itself what it holds")
        if self.dataset == "contours":
            self._refuse("path", "files say themselves what they hold: leave dataset out")
        if self.dataset == "bsds500":
            self._refuse("length")
            if self.path is None:
                raise ValueError("dataset bsds500 needs path, the folder of the data set")
        if "length" in self.changes:
            raise ValueError("length is a field of the source itself; take it out of changes")

    @property
    def name(self) -> str:
        """A short name for people: ``paper-14``, ``contours-9``, ``bsds500``, or the folder."""
        if self.dataset == "bsds500":
            return self.dataset
        if self.dataset == "contours":
            return f"{self.dataset}-{self.length}"
        return self.path if self.path is not None else f"{self.preset}-{self.length}"

    def _refuse(self, name: str, hint: str = "") -> None:
        """Refuse a field that the dataset has no use for, unless it has its default."""
        if (got := getattr(self, name)) != getattr(type(self), name, {}):
            files = self.dataset == "pathfinder" and self.path is not None
            what = "files" if files else f"dataset {self.dataset}"
            words = f"{name} is not for {what}; got {got!r}"
            raise ValueError(f"{words}; {hint}" if hint else words)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One leg of a curriculum; a run without a curriculum has one stage.

    Parameters
    ----------
    sources
        One, or several to be mixed.
    shares
        Of each source in the mixture, in any unit; equal if not given.
    images
        Train on this many at most.
    unique
        Images repeat after so many, each time in a new order; never if not given. The paper's two
        epochs are ``images=1_800_000, unique=900_000``.
    promote_at
        Go on to the next stage as soon as the held-out accuracy reaches this. A stage whose images
        run out before is gone on from all the same; see `RunConfig.stop_when_stuck`.
    mask_weight
        Above 0, teach beside the label where the path or the contour lies, pixel by pixel (its
        pixels and all others weigh the same): so many times that loss is added to the label's. The
        two maps of the readout are what a pixel is judged by, and their maxima what an image is.
        For images that are drawn, in a run whose target is the label.
    masks
        Teach masks in the place of labels. Rows of `results/trials` have it; it is not done any
        more, and training refuses it.
    """

    sources: tuple[Source, ...]
    shares: tuple[float, ...] = ()
    images: int
    unique: int | None = None
    promote_at: float | None = None
    mask_weight: float = 0.0
    masks: bool = False

    def __post_init__(self) -> None:
        check_types(self)
        if not self.sources:
            raise ValueError("sources is empty; a stage needs one or more")
        if not self.shares:
            object.__setattr__(self, "shares", (1.0,) * len(self.sources))
        if len(self.shares) != len(self.sources):
            raise ValueError(f"shares has {len(self.shares)} of {len(self.sources)} sources")
        if min(self.shares) <= 0:
            raise ValueError(f"shares must be greater than 0; got {min(self.shares):g}")
        require(self, "images", self.images >= 1, "1 or more")
        require(self, "unique", self.unique is None or self.unique >= 1, "1 or more")
        promotes = self.promote_at is None or 0 < self.promote_at <= 1
        require(self, "promote_at", promotes, "above 0 and at most 1")
        folders = [source.path for source in self.sources if source.path is not None]
        if self.mask_weight and folders:
            raise ValueError(f"mask_weight needs images that are drawn; {folders[0]} is a folder")
        require(self, "mask_weight", 0 <= self.mask_weight < math.inf, "0 or more")

    @property
    def name(self) -> str:
        """A short name for people: ``paper-6+9``, ``contours-9 with masks``."""
        first, *others = self.sources
        name = first.name
        for source in others:
            alike = source.path is None and replace(source, length=first.length) == first
            name += f"+{source.length if alike else source.name}"
        return f"{name} with masks" if self.mask_weight else name


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """A run, complete: with the same configuration the same network comes out.

    Parameters
    ----------
    recipe
        Where the configuration comes from, for the reader.
    model, options
        Name and keywords for `create_model`; or FILE.py:FUNCTION, and keywords of that function,
        for a network of one's own (docs/circuits.md).
    model_folder, model_sha256
        Of that file: its folder, if not the one from which one starts, and its check sum, read
        where they are not given. A run refuses another file.
    start, start_sha256, start_readout
        Trained weights to begin from, if not from new ones: a name of `hgru_vision.weights`, the
        folder of a finished run, or, for networks with layers of VGG16, a file with those. The
        check sum is read where it is not given, and a run refuses other weights than it says.
        ``start_readout=False`` begins with a new readout, such as one for labels after a training
        on pixels. See `hgru_vision.training.start`.
    stages
        What it is trained on, in order.
    seed, data_seed
        Of the network's starting values, and of all images.
    target
        "label", or "segmentation" for networks with two logits a pixel.
    balance
        Give the boundary of an image half of the weight in its loss and the rest of its pixels the
        other half, however few the former; for "segmentation".
    batch
        Images of a step, over all processes together.
    learning_rate
        Of Adam.
    full_rate_inputs
        The weights of a unit with more inputs than this (channels times the area of a kernel) learn
        more slowly, in proportion; None gives all the same rate. See
        `hgru_vision.training.step.parameter_groups`.
    warm_up
        Batches over which the learning rate rises in a straight line from 0 to its value.
    cool_down
        Batches at the end of the last stage over which it falls in a straight line to 0.
    clip
        Largest norm of the gradient; None leaves it as it is.
    contractor
        Above 0, add so many times `contractor_penalty` to the loss, so that a network that runs to
        a fixed point (`hgru_crbp`) learns to have one. The authors of C-RBP take 10.
    precision
        "float32"; "tf32" allows the tensor cores' shorter mantissa, and the hGRU to be stored in as
        few bits (`gemm` of `hgru_vision.ops`); "bfloat16" is autocast.
    compile, channels_last, cuda_graph
        `torch.compile`; the memory order that some convolutions prefer; and one recorded CUDA graph
        a step, which spares small networks the launches.
    evaluate_every
        Batches from one evaluation to the next.
    evaluation_images, test_images
        Held-out images of an evaluation, and of the final test.
    statistics_batches
        Training batches from which batch-norm statistics are estimated anew before an evaluation;
        0 leaves the running averages, which lag behind recurrent features.
    checkpoint_every
        Batches from one checkpoint to the next.
    stuck_after, stop_when_stuck
        Say if the accuracy is still at chance after so many images of a stage, and whether to end
        the run then: what follows a stage that was never learnt is in vain.

    Examples
    --------
    >>> stage = Stage(sources=(Source(length=6),), images=64_000)
    >>> config = RunConfig(model="hgru", stages=(stage,))
    >>> RunConfig.from_json(config.to_json()) == config, len(config.hash), config.task.length
    (True, 16, 6)
    """

    recipe: str = "own"
    model: str
    options: dict[str, Any] = field(default_factory=dict)
    model_folder: str | None = None
    model_sha256: str | None = None
    start: str | None = None
    start_sha256: str | None = None
    start_readout: bool = True
    stages: tuple[Stage, ...]
    seed: int = 0
    data_seed: int = 0
    target: Target = "label"
    balance: bool = False
    batch: int = linsley2018.BATCH_SIZE
    learning_rate: float = linsley2018.LEARNING_RATE
    full_rate_inputs: int | None = None
    warm_up: int = 0
    cool_down: int = 0
    clip: float | None = None
    contractor: float = 0.0
    precision: Precision = "float32"
    compile: bool = False
    channels_last: bool = False
    cuda_graph: bool = False
    evaluate_every: int = linsley2018.EVALUATE_EVERY
    evaluation_images: int = 2_000
    test_images: int = 10_000
    statistics_batches: int = 30
    checkpoint_every: int = 1_000
    stuck_after: int | None = None
    stop_when_stuck: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", to_json(self.options))
        check_types(self)
        if not self.stages:
            raise ValueError("stages is empty; a run needs one or more")
        for name in ("batch", "evaluate_every", "evaluation_images", "test_images"):
            require(self, name, getattr(self, name) >= 1, "1 or more")
        require(self, "checkpoint_every", self.checkpoint_every >= 1, "1 or more")
        for name in ("seed", "data_seed", "statistics_batches", "warm_up", "cool_down"):
            require(self, name, getattr(self, name) >= 0, "0 or more")
        for name in ("seed", "data_seed"):
            require(self, name, getattr(self, name) < 2**63, "at most 2**63 - 1")
        require(self, "learning_rate", 0 < self.learning_rate < math.inf, "greater than 0")
        require(self, "contractor", 0 <= self.contractor < math.inf, "0 or more")
        require(self, "clip", self.clip is None or self.clip > 0, "greater than 0")
        for name in ("stuck_after", "full_rate_inputs"):
            counted = getattr(self, name) is None or getattr(self, name) >= 1
            require(self, name, counted, "1 or more")
        for number, stage in enumerate(self.stages):
            if stage.images < self.batch:
                raise ValueError(
                    f"stages[{number}].images is {stage.images}, less than a batch, {self.batch}"
                )
            if stage.mask_weight and self.target != "label":
                raise ValueError(
                    f"stages[{number}].mask_weight is for runs with target label; with "
                    "segmentation every stage teaches masks"
                )
        if self.stop_when_stuck and self.stuck_after is None:
            raise ValueError("stop_when_stuck needs stuck_after, a number of images")
        if self.stop_when_stuck and self.target != "label":
            raise ValueError('stop_when_stuck needs target="label"; chance is not known for pixels')
        if self.balance and self.target != "segmentation":
            raise ValueError('balance is for pixels; it needs target="segmentation"')
        self._check_model()
        self._check_start()

    def _check_model(self) -> None:
        if self.model.endswith(".py"):
            raise ValueError(f"model {self.model} is a file; name its function: {self.model}:NAME")
        if not is_reference(self.model):
            if self.model_folder is not None or self.model_sha256 is not None:
                raise ValueError(
                    f"model {self.model} has no file, but its folder or sha256 is given"
                )
            return
        path = Path(self.model)
        if path.name != self.model:
            object.__setattr__(self, "model_folder", str(path.parent))
            object.__setattr__(self, "model", path.name)
        if self.model_sha256 is None:
            content = find_file(self.reference, "network").read_bytes()
            object.__setattr__(self, "model_sha256", hashlib.sha256(content).hexdigest())

    def _check_start(self) -> None:
        if self.start is not None and self.start_sha256 is None:
            from hgru_vision.training.start import check_sum

            object.__setattr__(self, "start_sha256", check_sum(self.start))
        if self.start is None and (self.start_sha256 is not None or not self.start_readout):
            given = "start_readout" if self.start_sha256 is None else "start_sha256"
            raise ValueError(f"{given} is given, but no start that it belongs to")

    @property
    def reference(self) -> str:
        """The model, and where it lies if it is of a file: ``mine/nets.py:leaky``."""
        return str(Path(self.model_folder or "") / self.model)

    @property
    def network(self) -> str:
        """A short name of the model for people: ``hgru``, or ``leaky`` of ``nets.py:leaky``."""
        return self.model.rpartition(":")[2]

    @property
    def task(self) -> Source:
        """What the run is judged on: the last source of the last stage."""
        return self.stages[-1].sources[-1]

    @property
    def boundaries(self) -> bool:
        """Whether it is judged by boundaries, so that its accuracy is a pixel AUC."""
        return self.task.dataset == "bsds500"

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits over all that changes the result.

        Fields at their default are left out: a field added later changes no hash, and a default
        must never change.
        """
        kept = without_defaults(self)
        for name in WITHOUT_EFFECT:
            kept.pop(name, None)
        text = json.dumps(kept, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def experiment(self) -> dict[str, Any]:
        """What repetitions have in common: all fields but seeds and those that change no network.

        Examples
        --------
        >>> stage = Stage(sources=(Source(),), images=32)
        >>> first, second = (RunConfig(model="hgru", stages=(stage,), seed=seed) for seed in (0, 1))
        >>> first.experiment == second.experiment
        True
        """
        apart = (*WITHOUT_EFFECT, *_OF_ONE_RUN)
        return {name: value for name, value in self.to_json().items() if name not in apart}

    def to_json(self) -> dict[str, Any]:
        """Give all fields as JSON can hold them."""
        return to_json(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Make a configuration of what `to_json` gave; unknown keys and wrong types are refused."""
        return from_json(cls, value)
