"""Mel-frequency cepstra of audio, through torchaudio's port of Kaldi's compute-mfcc-feats."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from asrtrain.io.audio import read_audio
from asrtrain.io.errors import UserError
from asrtrain.io.settings import require, require_choice


@dataclass(frozen=True, kw_only=True)
class MfccConfig:
    """Settings of MFCC; Kaldi's names and defaults, but for dither, which is off."""

    sample_rate: int = 16000
    """Of the audio, in Hz; a file of another rate is an error."""
    raw_byte_order: str = "auto"
    """Of headerless .raw files: auto (guessed from the samples), little or big."""
    num_ceps: int = 13
    """Cepstra a frame, C0 included."""
    num_mel_bins: int = 23
    """Triangular mel filters."""
    low_freq: float = 20.0
    """Lower edge of the filters in Hz."""
    high_freq: float = 0.0
    """Upper edge of the filters in Hz; 0 or below: that much below half the sampling rate."""
    frame_length_ms: float = 25.0
    """Length of the analysis window."""
    frame_shift_ms: float = 10.0
    """Time from frame to frame."""
    cepstral_lifter: float = 22.0
    """Of the cepstra; 0 for none."""
    use_energy: bool = False
    """Whether log energy takes C0's place."""

    def __post_init__(self) -> None:
        require_choice("mfcc.raw_byte_order", self.raw_byte_order, ("auto", "little", "big"))
        require(
            1 <= self.num_ceps <= self.num_mel_bins,
            f"mfcc.num_ceps={self.num_ceps}: expected 1 to mfcc.num_mel_bins={self.num_mel_bins}",
        )


def read_mfcc(path: Path, config: MfccConfig) -> npt.NDArray[np.float32]:
    """MFCC (T, num_ceps) of an audio file. Raises UserError for another sampling rate."""
    import torch  # slow to import, and not needed where cepstra are read
    from torchaudio.compliance import kaldi

    samples, rate = read_audio(path, config.sample_rate, config.raw_byte_order)
    if rate != config.sample_rate:
        raise UserError(
            f"{path}: sampled at {rate} Hz, expected mfcc.sample_rate={config.sample_rate}; "
            f"say mfcc.sample_rate={rate} or resample it"
        )
    if len(samples) < config.frame_length_ms * rate / 1000:
        return np.empty((0, config.num_ceps), np.float32)
    cepstra = kaldi.mfcc(
        torch.from_numpy(samples)[None],
        sample_frequency=float(rate),
        num_ceps=config.num_ceps,
        num_mel_bins=config.num_mel_bins,
        low_freq=config.low_freq,
        high_freq=config.high_freq,
        frame_length=config.frame_length_ms,
        frame_shift=config.frame_shift_ms,
        cepstral_lifter=config.cepstral_lifter,
        use_energy=config.use_energy,
        dither=0.0,
    )
    return cepstra.numpy()
