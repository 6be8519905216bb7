"""A model knows phones by number: a lang directory of other numbers would silently misuse it."""

from pathlib import Path

from asrtrain.hmm.structure import HmmStructure
from asrtrain.io.errors import UserError
from asrtrain.lang.symbols import read_symbols

PHONES = "phones.txt"


def check_phones(lang: Path, model: Path, structure: HmmStructure) -> None:
    """Raise UserError unless the model in `model` has the phones of `lang`, with their numbers.

    Disambiguation symbols may differ (Kaldi: utils/lang/check_phones_compatible.sh). A model
    without phones.txt beside it is checked for the numbers alone.
    """
    wanted = _phones(lang / PHONES)
    if (model / PHONES).is_file():
        same = _phones(model / PHONES) == wanted
    else:
        same = sorted(wanted.values()) == sorted(structure.transitions.phones)
    if not same:
        raise UserError(
            f"{lang}/{PHONES} and the model in {model} have different phones; use the lang "
            "directory that the model was trained with, or train it again"
        )


def _phones(path: Path) -> dict[str, int]:
    symbols = read_symbols(path)
    return {name: value for name, value in symbols.items() if value and not name.startswith("#")}
