"""Alignment of words, WER, intervals, and the comparison of arms."""
