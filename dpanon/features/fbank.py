"""80-dimensional Kaldi log-mel filter banks."""

import kaldi_native_fbank as knf
import numpy as np

NUM_MEL = 80
SAMPLE_RATE = 16000
_BLOCK = 16000 * 60


def fbank(samples: np.ndarray, num_mel: int = NUM_MEL) -> np.ndarray:
    """Log-mel energies of a mono 16 kHz recording, one frame per 10 ms.

    No dither, so that the same recording has the same features; Kaldi's other defaults
    (25 ms Povey window, ``snip_edges=false``), energies of samples scaled to 16-bit range.

    Args:
        samples: ``(L,)``, full scale is 1.

    Returns:
        ``(T, num_mel)`` float32 with ``T = (L + 80) // 160``.
    """
    options = knf.FbankOptions()
    options.frame_opts.dither = 0.0
    options.frame_opts.snip_edges = False
    options.frame_opts.samp_freq = SAMPLE_RATE
    options.mel_opts.num_bins = num_mel
    extractor = knf.OnlineFbank(options)
    for start in range(0, len(samples), _BLOCK):  # bounded copies for long recordings
        block = np.asarray(samples[start : start + _BLOCK], dtype=np.float32) * 32768.0
        extractor.accept_waveform(SAMPLE_RATE, block.tolist())
    extractor.input_finished()
    num = extractor.num_frames_ready
    out = np.empty((num, num_mel), dtype=np.float32)
    for i in range(num):
        out[i] = extractor.get_frame(i)
    return out
