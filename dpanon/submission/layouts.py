"""Names, files and sizes of the VoicePrivacy Challenges 2026 (track 1), 2024 and 2022.

A set ``libri_dev_enrolls`` of the organisers is ``data/libri_dev_enrolls``, its release with the suffix ``_mine`` is
``data/libri_dev_enrolls_mine``. Audio lies in ``wav/<utterance>.wav`` of the release, 16 kHz, PCM16.
"""

from dataclasses import dataclass

from dpanon.errors import UsageError

ENROLLS, TRIALS, EMOTION, TRAIN = "enrolls", "trials", "emotion", "train"
TABLES = ("spk2gender", "spk2utt", "text", "utt2dur", "utt2spk", "wav.scp")  # of every set
MORE_TABLES = {ENROLLS: ("enrolls",), TRIALS: ("trials",), EMOTION: ("utt2emo", "spk2fold"), TRAIN: ()}


@dataclass(frozen=True)
class VpcSet:
    """One data directory of a challenge.

    Attributes:
        role: enrolls, trials, emotion or train.
        num_utts: documented number of utterances; 0: not documented.
        min_bytes: what the organisers' upload refuses to go below; 0: no such rule.
        required: False for corpora that the 2022 challenge has and others do not.
    """

    name: str
    role: str
    num_utts: int = 0
    min_bytes: int = 0
    required: bool = True

    @property
    def split(self) -> str:
        """dev, test, or '' for training data."""
        return next((word for word in ("dev", "test") if f"_{word}" in self.name), "")

    @property
    def corpus(self) -> str:
        return self.name.split("_")[0]

    @property
    def kind(self) -> str:
        """mixed, f, m, or f_common and m_common (all speakers say the same), of a set of trials."""
        return self.name.partition("_trials_")[2]

    @property
    def tables(self) -> tuple[str, ...]:
        return (*TABLES, *MORE_TABLES[self.role])


@dataclass(frozen=True)
class Layout:
    """One challenge. ``summary``: folder of the rank file; ``prefix``: how the archive's name begins."""

    challenge: str
    sets: tuple[VpcSet, ...]
    summary: str
    prefix: str
    pretrained: str  # folder of the results of the attacker that was trained on original speech

    def tests(self) -> list[tuple[VpcSet, VpcSet]]:
        """(enrolment set, trial set) of every verification test."""
        by_name = {item.name: item for item in self.sets}
        pairs = []
        for item in self.sets:
            if item.role == TRIALS:
                pairs.append((by_name[f"{item.corpus}_{item.split}_enrolls"], item))
        return pairs

    def of(self, *roles: str) -> list[VpcSet]:
        return [item for item in self.sets if item.role in roles]

    def rank_file(self, suffix: str) -> str:
        if self.challenge == "2022":
            return f"{self.summary}/results_summary{suffix}.txt"
        return f"{self.summary}/result_for_rank{suffix}"

    def results_zip(self, suffix: str) -> str:
        return f"{self.summary}/result_for_submission{suffix}.zip"

    def archive(self, suffix: str) -> str:
        return f"{self.prefix}{suffix}.tar.gz"


def _libri(split: str, trials: dict[str, tuple[int, int]], enrolls: tuple[int, int]) -> tuple[VpcSet, ...]:
    return (
        VpcSet(f"libri_{split}_enrolls", ENROLLS, *enrolls),
        *(VpcSet(f"libri_{split}_trials_{kind}", TRIALS, *numbers) for kind, numbers in trials.items()),
    )


def _vctk(split: str) -> tuple[VpcSet, ...]:
    kinds = ("f", "m", "f_common", "m_common")
    return (
        VpcSet(f"vctk_{split}_enrolls", ENROLLS, required=False),
        *(VpcSet(f"vctk_{split}_trials_{kind}", TRIALS, required=False) for kind in kinds),
    )


_TRAIN_UTTS = 104_014
LAYOUTS = {
    "2026": Layout(
        "2026",
        (
            *_libri("dev", {"mixed": (1978, 455_295_386)}, (343, 7_324_598)),
            *_libri("test", {"mixed": (1496, 416_608_014)}, (438, 86_805_881)),
            VpcSet("IEMOCAP_dev", EMOTION, 0, 418_919_757),
            VpcSet("IEMOCAP_test", EMOTION, 0, 388_856_264),
            VpcSet("train-clean-360", TRAIN, _TRAIN_UTTS, 41_937_610_246),
        ),
        "exp/results_summary/track1",
        "submission_track1",
        "exp/asv_ssl",
    ),
    "2024": Layout(
        "2024",
        (
            *_libri("dev", {"f": (1018, 214_121_749), "m": (960, 210_210_523)}, (343, 71_101_617)),
            *_libri("test", {"f": (734, 189_792_733), "m": (762, 206_095_756)}, (438, 85_776_535)),
            VpcSet("IEMOCAP_dev", EMOTION, 0, 408_732_347),
            VpcSet("IEMOCAP_test", EMOTION, 0, 378_653_727),
            VpcSet("train-clean-360", TRAIN, _TRAIN_UTTS, 40_930_724_008),
        ),
        "exp/results_summary",
        "submission",
        "exp/asv_orig",
    ),
    "2022": Layout(
        "2022",
        (
            *_libri("dev", {"f": (1018, 0), "m": (960, 0)}, (343, 0)),
            *_vctk("dev"),
            *_libri("test", {"f": (734, 0), "m": (762, 0)}, (438, 0)),
            *_vctk("test"),
            VpcSet("train-clean-360", TRAIN, _TRAIN_UTTS),
        ),
        "exp/results_summary",
        "submission",
        "exp/asv_orig",
    ),
}


def layout(challenge: str) -> Layout:
    if challenge not in LAYOUTS:
        raise UsageError(f"unknown challenge {challenge!r}; choose one of {', '.join(LAYOUTS)}")
    return LAYOUTS[challenge]


def check_suffix(suffix: str) -> str:
    """A suffix begins with _ and is not part of a set's own name: ``_f`` would make one set of two."""
    if not suffix.startswith("_") or not suffix[1:].replace("_", "").replace("-", "").replace(".", "").isalnum():
        raise UsageError(f"--suffix {suffix!r}: begins with _ and has letters, digits, . - and _ only, e.g. _mine")
    names = {item.name for challenge in LAYOUTS.values() for item in challenge.sets}
    for name in names:
        if f"{name}{suffix}" in names or name.endswith(suffix):
            raise UsageError(f"--suffix {suffix}: {name}{suffix} could be taken for a set of its own; choose another")
    return suffix
