"""Only from TensorFlow 2.4 on; before, test_releases.py looks at the error."""

import pytest
import tensorflow as tf

if tf.__version__.startswith("1."):
    collect_ignore_glob = ["test_[!r]*.py"]
else:

    @pytest.fixture(autouse=True)
    def policy_of_this_test_only():
        """Leaves the policy as it found it."""
        yield
        from contrib_opt.keras.mixed_precision import experimental

        experimental.set_policy(None)
