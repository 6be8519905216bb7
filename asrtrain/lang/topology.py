"""The HMM of a phone, in Kaldi's text form (utils/gen_topo.pl)."""

from asrtrain.lang.lexicon import Lexicon

STATES, SILENCE_STATES = 3, 5


def topology(lexicon: Lexicon, phones: dict[str, int]) -> str:
    """Three states from left to right; for silences five, of which the inner ones may be skipped.

    Initial probabilities only: training estimates them.
    """
    speech = [str(phones[phone]) for phone in lexicon.nonsilence_phones]
    silences = [str(phones[phone]) for phone in lexicon.silence_phones]
    forward = [{state: 0.75, state + 1: 0.25} for state in range(STATES)]
    return f"<Topology>\n{_entry(speech, forward)}{_entry(silences, _silence())}</Topology>\n"


def _silence() -> list[dict[int, float]]:
    last, share = SILENCE_STATES - 1, 1 / (SILENCE_STATES - 1)
    first = dict.fromkeys(range(last), share)
    inner = [dict.fromkeys(range(1, last + 1), share) for _ in range(1, last)]
    return [first, *inner, {last: 0.75, last + 1: 0.25}]


def _entry(members: list[str], states: list[dict[int, float]]) -> str:
    lines = ["<TopologyEntry>", "<ForPhones>", " ".join(members), "</ForPhones>"]
    for state, transitions in enumerate(states):
        arcs = " ".join(f"<Transition> {to} {share}" for to, share in transitions.items())
        lines.append(f"<State> {state} <PdfClass> {state} {arcs} </State>")
    lines += [f"<State> {len(states)} </State>", "</TopologyEntry>"]
    return "\n".join(lines) + "\n"
