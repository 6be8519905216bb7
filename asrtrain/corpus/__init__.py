"""Data directories as Kaldi lays them out: read, validate, split, subset."""
