"""Labelled frames as memory-mapped shards, and the deterministic order in which they are seen."""
