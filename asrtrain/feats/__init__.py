"""From audio or cepstra to normalized features."""
