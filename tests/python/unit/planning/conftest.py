"""Property tests try the same examples in every run; ``--hypothesis-profile=random`` tries others."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("random", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile("repeatable")
