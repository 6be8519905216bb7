"""The verb `doctor`: what this installation has, and what to do about what it lacks."""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from asrtrain.io.errors import UserError

KALDI_SET = {
    "kaldi-hmm-gmm": "1.1.4",
    "kaldifst": "1.7.17",
    "kaldi-decoder": "0.2.11",
    "kaldilm": "1.15.5",
}
"""The versions that fit each other: each embeds an OpenFst of its own."""

OTHERS = (
    *("torch", "torchaudio", "numpy", "kaldiio", "hydra-core", "sentencepiece", "soundfile"),
    *("numba", "tqdm", "kaldialign"),
)

OPTIONAL_COMMANDS = {
    "sclite": "NIST's scoring; Debian's package sctk",
    "sph2pipe": "unpacks shorten-compressed SPHERE audio",
}
"""Programs that no verb needs but that work beside them may, and what for."""


@dataclass(frozen=True, kw_only=True)
class DoctorConfig:
    """`doctor` has no settings."""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    name: str
    found: str
    remedy: str = ""
    """What to do; empty if all is well."""


def doctor(config: DoctorConfig) -> None:
    """Check this installation: the machine, versions, the Kaldi bindings, gloo, other programs.

    Prints a line for each finding; exit status 1 if something that is needed is missing.
    """
    findings = [*_machine(), *_packages(), _bindings(), _backend(), *_commands()]
    width = max(len(each.name) for each in findings)
    for each in findings:
        mark = "problem" if each.remedy else "ok"
        print(f"{mark:8} {each.name:{width}}  {each.found}{each.remedy and f': {each.remedy}'}")
    problems = [each.name for each in findings if each.remedy]
    if problems:
        raise UserError(f"{len(problems)} problem(s): {', '.join(problems)}; remedies above")


def _machine() -> list[Finding]:
    python = platform.python_version()
    supported = (3, 11) <= sys.version_info < (3, 14)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    writable = os.access(".", os.W_OK)
    return [
        Finding("python", python, "" if supported else "use Python 3.11 to 3.13"),
        Finding("machine", f"{len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB"),
        Finding("folder", os.getcwd(), "" if writable else "not writable, change to another"),
    ]


def _packages() -> list[Finding]:
    findings = []
    for name in (*OTHERS, *KALDI_SET):
        wanted = KALDI_SET.get(name)
        try:
            found = version(name)
        except PackageNotFoundError:
            findings.append(Finding(name, "missing", "run tools/setup.sh"))
            continue
        fits = wanted in (None, found)
        findings.append(Finding(name, found, "" if fits else f"pip install {name}=={wanted}"))
    return findings


def _bindings() -> Finding:
    """Pass an FST from one library to the other, which fails if their OpenFsts differ."""
    return _tried("kaldi bindings together", _pass_fst_between_libraries)


def _pass_fst_between_libraries() -> str:
    import kaldi_hmm_gmm as khg
    import kaldifst

    from asrtrain.hmm.structure import monophone_structure

    phone = (
        "<Topology>\n<TopologyEntry>\n<ForPhones>\n1\n</ForPhones>\n"
        "<State> 0 <PdfClass> 0 <Transition> 0 0.5 <Transition> 1 0.5 </State>\n"
        "<State> 1 </State>\n</TopologyEntry>\n</Topology>\n"
    )
    fst = kaldifst.compile("0 0.0\n")
    khg.add_transition_probs(monophone_structure(phone).transitions, [], 1.0, 1.0, fst)
    done = subprocess.run(
        [sys.executable, "-m", "kaldilm", "--help"], capture_output=True, check=False, timeout=60
    )
    if done.returncode:
        raise RuntimeError("python -m kaldilm fails")
    return "fit each other"


def _backend() -> Finding:
    return _tried("torch.distributed", _describe_backends)


def _describe_backends() -> str:
    import torch
    import torch.distributed as dist

    if not dist.is_gloo_available():
        raise RuntimeError("gloo is missing from this build of torch")
    devices = f"{torch.cuda.device_count()} CUDA device(s)" if torch.cuda.is_available() else "CPU"
    return f"gloo{' and NCCL' if dist.is_nccl_available() else ''}, {devices}"


def _commands() -> list[Finding]:
    return [
        Finding(name, shutil.which(name) or f"not on the PATH; optional: {use}")
        for name, use in OPTIONAL_COMMANDS.items()
    ]


def _tried(name: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(name, check())
    except Exception as error:  # whatever a broken installation raises is the finding
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Finding(name, reason, "run tools/setup.sh")
