"""Settings of all tests."""

from hypothesis import settings

# No time is asserted in a test: machines are shared and slow at times.
settings.register_profile("asrtrain", deadline=None)
settings.load_profile("asrtrain")
