"""asrtrain: 1-bit data-parallel training of DNN acoustic models, from raw audio to a verdict."""

__version__ = "0.1.0"
