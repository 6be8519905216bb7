"""Senones: topology, flat start, forced alignment, Kaldi's model files."""
