"""From features to words: decoding graph, search, lattices."""
