"""The verbs `feats` and `cmvn`, from files to normalized features."""

from pathlib import Path

import kaldiio
import numpy as np
import pytest
import soundfile
from torchaudio.compliance import kaldi as torchaudio_kaldi

from asrtrain.corpus.datadir import DataDirectory
from asrtrain.feats.cmvn import CmvnConfig, NormalizeConfig, cmvn
from asrtrain.feats.deltas import add_deltas
from asrtrain.feats.extract import FeatsConfig, extract
from asrtrain.feats.mfcc import MfccConfig
from asrtrain.feats.reader import open_features
from asrtrain.io.errors import UserError
from tests.io.test_sphinx import write_mfc

FRAMES = {"s0-0": 20, "s0-1": 11, "s1-0": 30}


def cepstra(utterance: str) -> np.ndarray:
    seed = list(FRAMES).index(utterance)
    return np.random.default_rng(seed).standard_normal((FRAMES[utterance], 13)) * 3 + seed


def data_directory(path: Path, table: str, files: dict[str, Path]) -> str:
    path.mkdir(exist_ok=True)
    DataDirectory(
        path,
        {each: ["WORD"] for each in files},
        {each: each.split("-")[0] for each in files},
        table,
        {each: str(file) for each, file in files.items()},
    ).write(path)
    return str(path)


def sphinx_data(path: Path) -> str:
    files = {each: write_mfc(path / f"{each}.mfc", cepstra(each)) for each in FRAMES}
    return data_directory(path / "data", "cepstra.scp", files)


def normalized(utterances: list[str]) -> dict[str, np.ndarray]:
    raw = {each: add_deltas(cepstra(each).astype(np.float32)) for each in utterances}
    together = np.concatenate(list(raw.values())).astype(np.float64)
    return {each: (rows - together.mean(0)) / together.std(0) for each, rows in raw.items()}


def test_the_first_cepstra_only(tmp_path: Path) -> None:
    """Deltas are of each cepstrum alone, so that keeping 11 of 13 keeps 3 blocks of 11 columns."""
    data = sphinx_data(tmp_path)
    for num_ceps, name in ((0, "all"), (11, "first")):
        extract(FeatsConfig(data=data, num_ceps=num_ceps, out=str(tmp_path / name)))
    whole, part = (open_features(tmp_path / name) for name in ("all", "first"))
    assert part.dim == 33
    columns = [13 * block + column for block in range(3) for column in range(11)]
    np.testing.assert_array_equal(part.read("s0-1"), whole.read("s0-1")[:, columns])


@pytest.mark.parametrize("num_ceps", [-1, 14])
def test_more_cepstra_than_there_are(num_ceps: int) -> None:
    with pytest.raises(UserError, match=rf"num_ceps={num_ceps}: expected 0 to mfcc.num_ceps=13"):
        FeatsConfig(data="data", num_ceps=num_ceps)


def test_sphinx_cepstra_with_deltas_normalized_by_speaker(tmp_path: Path) -> None:
    extract(FeatsConfig(data=sphinx_data(tmp_path), out=str(tmp_path / "feats")))
    reader = open_features(tmp_path / "feats")
    assert (reader.dim, reader.utterances) == (39, sorted(FRAMES))
    for speaker in (["s0-0", "s0-1"], ["s1-0"]):
        for utterance, wanted in normalized(speaker).items():
            got = reader.read(utterance)
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, wanted, atol=2e-5)


def test_the_folder_is_a_data_directory_that_kaldiio_reads(tmp_path: Path) -> None:
    extract(FeatsConfig(data=sphinx_data(tmp_path), out=str(tmp_path / "feats")))
    assert DataDirectory.read(tmp_path / "feats").text["s0-1"] == ["WORD"]
    stored = dict(kaldiio.load_ark(str(tmp_path / "feats" / "feats.ark")))
    np.testing.assert_allclose(stored["s1-0"][:, :13], cepstra("s1-0"), rtol=1e-6)
    statistics = dict(kaldiio.load_ark(str(tmp_path / "feats" / "cmvn.ark")))
    assert statistics["s0"].shape == (2, 40)
    assert statistics["s0"][0, -1] == 31


@pytest.mark.parametrize("by", ["global", "none"])
def test_other_normalizations(tmp_path: Path, by: str) -> None:
    config = FeatsConfig(
        data=sphinx_data(tmp_path), out=str(tmp_path / "feats"), cmvn=NormalizeConfig(by=by)
    )
    extract(config)
    wanted = normalized(list(FRAMES))["s0-1"]
    if by == "none":
        wanted = add_deltas(cepstra("s0-1").astype(np.float32))
    np.testing.assert_allclose(open_features(tmp_path / "feats").read("s0-1"), wanted, atol=2e-5)


def test_cmvn_anew_on_the_same_features(tmp_path: Path) -> None:
    extract(FeatsConfig(data=sphinx_data(tmp_path), out=str(tmp_path / "feats")))
    cmvn(CmvnConfig(data=str(tmp_path / "feats"), out=str(tmp_path / "again"), by="global"))
    got = open_features(tmp_path / "again").read("s0-1")
    np.testing.assert_allclose(got, normalized(list(FRAMES))["s0-1"], atol=2e-5)
    assert not (tmp_path / "again" / "feats.ark").exists()


def wav_data(path: Path, rate: int = 8000) -> str:
    files = {}
    for number, utterance in enumerate(FRAMES):
        files[utterance] = path / f"{utterance}.wav"
        noise = np.random.default_rng(number).normal(0, 3000, rate // 2)
        soundfile.write(files[utterance], noise.astype(np.int16), rate)
    return data_directory(path / "data", "wav.scp", files)


def test_audio_becomes_torchaudios_mfcc_whatever_nj(tmp_path: Path) -> None:
    data = wav_data(tmp_path)
    for nj in (1, 2):
        extract(
            FeatsConfig(
                data=data,
                out=str(tmp_path / f"nj{nj}"),
                mfcc=MfccConfig(sample_rate=8000),
                cmvn=NormalizeConfig(by="none"),
                nj=nj,
            )
        )
    import torch

    samples, _ = soundfile.read(tmp_path / "s0-1.wav", dtype="int16")
    wanted = torchaudio_kaldi.mfcc(
        torch.from_numpy(samples.astype(np.float32))[None], sample_frequency=8000.0, dither=0.0
    )
    got = open_features(tmp_path / "nj1").read("s0-1")
    np.testing.assert_allclose(got[:, :13], wanted.numpy(), atol=1e-3)
    first, second = ((tmp_path / f"nj{nj}" / "feats.ark").read_bytes() for nj in (1, 2))
    assert first == second


def test_another_sampling_rate_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"s0-0.wav: sampled at 8000 Hz, expected .*=16000"):
        extract(FeatsConfig(data=wav_data(tmp_path), out=str(tmp_path / "feats")))


def test_an_empty_file_is_dropped_with_a_count_up_to_a_share(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = sphinx_data(tmp_path)
    write_mfc(tmp_path / "s0-1.mfc", np.empty((0, 13)))
    with pytest.raises(UserError, match=r"1 of 3 utterances have no frames, such as s0-1"):
        extract(FeatsConfig(data=data, out=str(tmp_path / "feats")))
    assert not (tmp_path / "feats").exists()
    extract(FeatsConfig(data=data, out=str(tmp_path / "feats"), max_empty=0.5))
    assert open_features(tmp_path / "feats").utterances == ["s0-0", "s1-0"]
    assert "s0-1 has no frames, dropped" in caplog.text


def test_a_truncated_file_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    data = sphinx_data(tmp_path)
    file = tmp_path / "s0-1.mfc"
    file.write_bytes(file.read_bytes()[:-2])
    with pytest.raises(UserError, match=r"s0-1.mfc: says 143 values"):
        extract(FeatsConfig(data=data, out=str(tmp_path / "feats")))
    assert not [each for each in tmp_path.iterdir() if "feats" in each.name]


def test_a_folder_without_features_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data: no feats.scp; make features with `asrtrain feats"):
        open_features(sphinx_data(tmp_path))
