"""n-gram probabilities with Witten-Bell smoothing.

For a history h seen c(h) times with T(h) different words after it,

    P(w | h) = (c(h w) + T(h) P(w | h')) / (c(h) + T(h)),

h' being h without its first word, and below the unigram the uniform distribution over the
vocabulary (Witten & Bell 1991; Chen & Goodman 1998, section 2.6). The weight of the shorter history
is what ARPA calls the back-off weight, so the file gives exactly these probabilities.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from asrtrain.lang.symbols import SENTENCE_END, SENTENCE_START

Gram = tuple[str, ...]


@dataclass(frozen=True)
class NgramModel:
    """Probabilities of seen n-grams, and weights that pass the rest to shorter histories."""

    order: int
    probabilities: dict[Gram, float]
    """P(w | h) for each seen h w; all words of the vocabulary as unigrams."""
    backoffs: dict[Gram, float]
    """For each history h, the factor of P(w | h') for a word w not seen after h."""

    def probability(self, word: str, history: Sequence[str]) -> float:
        """P(word | the last words of history); 0 for a word outside the vocabulary."""
        context = tuple(history)[max(len(history) - self.order + 1, 0) :]
        weight = 1.0
        while (gram := (*context, word)) not in self.probabilities:
            if not context:
                return 0.0
            weight *= self.backoffs.get(context, 1.0)
            context = context[1:]
        return weight * self.probabilities[gram]


@dataclass(frozen=True)
class Perplexity:
    """How well a model foretells a text."""

    perplexity: float
    """exp of the mean negative log probability of a word or sentence end; unknown ones left out."""
    words: int
    """Words and sentence ends that count."""
    unknown: int
    """Words outside the vocabulary."""


def estimate_witten_bell(
    sentences: Iterable[Sequence[str]], vocabulary: Iterable[str], order: int
) -> NgramModel:
    """Estimate a model of `order` over `vocabulary` and the sentence end."""
    followers = _count(sentences, order)
    uniform = 1 / (len(set(vocabulary)) + 1)
    probabilities: dict[Gram, float] = {(word,): uniform for word in (*vocabulary, SENTENCE_END)}
    backoffs: dict[Gram, float] = {}
    for history in sorted(followers, key=lambda each: (len(each), each)):
        counts = followers[history]
        total, kinds = counts.total(), len(counts)
        backoffs[history] = kinds / (total + kinds)
        shorter = NgramModel(order, probabilities, backoffs)
        seen = counts if history else {gram[0]: counts[gram[0]] for gram in list(probabilities)}
        probabilities |= {
            (*history, word): count / (total + kinds)
            + backoffs[history] * (shorter.probability(word, history[1:]) if history else uniform)
            for word, count in seen.items()
        }
    return NgramModel(order, probabilities, backoffs)


def perplexity(model: NgramModel, sentences: Iterable[Sequence[str]]) -> Perplexity:
    """Measure `model` on a text."""
    log_sum, words, unknown = 0.0, 0, 0
    for sentence in sentences:
        history = [SENTENCE_START]
        for word in (*sentence, SENTENCE_END):
            probability = model.probability(word, history)
            history.append(word)
            if probability:
                log_sum += math.log(probability)
                words += 1
            else:
                unknown += 1
    return Perplexity(math.exp(-log_sum / words), words, unknown)


def _count(sentences: Iterable[Sequence[str]], order: int) -> dict[Gram, Counter[str]]:
    """How often each word follows each history of 0 to order - 1 words."""
    followers: defaultdict[Gram, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        words = (SENTENCE_START, *sentence, SENTENCE_END)
        for place in range(1, len(words)):
            for length in range(min(order, place + 1)):
                followers[words[place - length : place]][words[place]] += 1
    return dict(followers)
