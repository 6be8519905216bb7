"""Lexicon, symbols, L.fst; n-gram language models and G.fst."""
