"""The verb `graph`: HCLG.fst from lexicon, language model and HMMs (Kaldi: utils/mkgraph.sh)."""

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

import kaldi_hmm_gmm as khg
import kaldifst

from asrtrain.hmm.model_file import FINAL_MODEL, TREE, read_structure
from asrtrain.hmm.phones import check_phones
from asrtrain.hmm.structure import HmmStructure
from asrtrain.io.errors import UserError
from asrtrain.io.settings import StageConfig, require
from asrtrain.io.stage import stage, write_counts
from asrtrain.lang.directory import read_fst, read_phone_set
from asrtrain.lang.symbols import read_symbols

log = logging.getLogger(__name__)

HCLG = "HCLG.fst"


@dataclass(frozen=True, kw_only=True)
class GraphConfig(StageConfig):
    """Settings of `graph`."""

    lang: str
    """Lang directory, for L_disambig.fst and symbols."""
    lm: str
    """Directory with G.fst."""
    model: str
    """Directory with final.mdl and tree."""
    transition_scale: float = 1.0
    """Factor on the log probabilities of transitions between states."""
    self_loop_scale: float = 0.1
    """Factor on those of self-loops."""

    def __post_init__(self) -> None:
        for key in ("transition_scale", "self_loop_scale"):
            require(getattr(self, key) >= 0, f"{key}={getattr(self, key)}: expected 0 or more")


@stage("graph", inputs=("lang", "lm", "model"))
def build(config: GraphConfig, out: Path) -> None:
    """Compose HCLG: transition ids in, words out; words.txt, final.mdl and tree go beside it."""
    lang = Path(config.lang)
    structure = read_structure(Path(config.model))
    check_phones(lang, Path(config.model), structure)
    disambig = read_phone_set(lang, "disambig")
    lg = _lexicon_and_grammar(
        read_fst(lang / "L_disambig.fst", "lang"), read_fst(Path(config.lm) / "G.fst", "lm")
    )
    clg, windows = kaldifst.compose_context(
        disambig, structure.context.context_width, structure.context.central_position, lg
    )
    kaldifst.arcsort(clg, "ilabel")
    hclg = _hmm_states(clg, windows, structure, config)
    unknown = set(_words_out(hclg)) - set(read_symbols(lang / "words.txt").values())
    if unknown or not hclg.num_states:
        raise UserError(
            f"{config.lm}/G.fst and {lang}/L_disambig.fst do not share words; make the language "
            "model with this lang directory"
        )
    hclg.write(str(out / HCLG))
    for folder, name in ((config.model, FINAL_MODEL), (config.model, TREE), (lang, "words.txt")):
        shutil.copyfile(Path(folder) / name, out / name)
    arcs = sum(hclg.num_arcs(state) for state in kaldifst.StateIterator(hclg))
    log.info("HCLG: %d states, %d arcs", hclg.num_states, arcs)
    write_counts(out, states=hclg.num_states, arcs=arcs)


def _lexicon_and_grammar(
    lexicon: kaldifst.StdVectorFst, grammar: kaldifst.StdVectorFst
) -> kaldifst.StdVectorFst:
    kaldifst.arcsort(grammar, "ilabel")
    lg = kaldifst.compose(lexicon, grammar)
    kaldifst.determinize_star(lg, use_log=True)
    kaldifst.minimize_encoded(lg)
    kaldifst.arcsort(lg, "ilabel")
    return lg


def _hmm_states(
    clg: kaldifst.StdVectorFst,
    windows: list[list[int]],
    structure: HmmStructure,
    config: GraphConfig,
) -> kaldifst.StdVectorFst:
    """H composed with CLG, without disambiguation symbols, with self-loops."""
    options = khg.HTransducerConfig(transition_scale=config.transition_scale)
    h, disambig = khg.get_h_transducer(windows, structure.context, structure.transitions, options)
    kaldifst.arcsort(h, "olabel")
    hclg = kaldifst.compose(h, clg)
    kaldifst.determinize_star(hclg, use_log=True)
    _to_epsilon(hclg, set(disambig))
    kaldifst.minimize_encoded(hclg)
    hclg = khg.add_self_loops(
        self_loop_scale=config.self_loop_scale,
        disambig_syms=[],
        reorder=True,
        trans_model=structure.transitions,
        ifst=hclg,
    )
    return hclg


def _to_epsilon(fst: kaldifst.StdVectorFst, symbols: set[int]) -> None:
    """Replace input `symbols` by epsilon (Kaldi: fstrmsymbols)."""
    for state in range(fst.num_states):
        arcs = [
            kaldifst.StdArc(
                0 if arc.ilabel in symbols else arc.ilabel, arc.olabel, arc.weight, arc.nextstate
            )
            for arc in kaldifst.ArcIterator(fst, state)
        ]
        fst.delete_arcs(state, len(arcs))
        for arc in arcs:
            fst.add_arc(state, arc)


def _words_out(fst: kaldifst.StdVectorFst) -> set[int]:
    return {
        arc.olabel for state in range(fst.num_states) for arc in kaldifst.ArcIterator(fst, state)
    }
