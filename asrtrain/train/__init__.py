"""The trainer: synchronous SGD on several workers, its schedule, its launch."""
