"""legacy_examples/adamw_moving_average.py, run as its users run it."""

import re

import pytest

from test_legacy_examples import needs_sklearn, run, start

PROGRAM = "adamw_moving_average"
pytestmark = [needs_sklearn, pytest.mark.long]


def accuracies(output):
    """The percentages of the raw and of the averaged weights, on the last lines."""
    found = re.findall(r"^Test accuracy of the (\w+) weights: (.+) %$", output, re.M)
    assert [name for name, _ in found] == ["raw", "averaged"]
    return [float(percentage) for _, percentage in found]


def test_the_averaged_weights_are_better_than_the_last(tmp_path):
    output = run(PROGRAM, f"--model_dir={tmp_path}")
    raw, averaged = accuracies(output)
    # Seeds 0 to 3 end at 95.3 to 97.2 % and at 97.2 to 97.8 %.
    assert averaged >= 95.5
    assert averaged >= raw
    assert len(re.findall(r"^step .* loss ", output, re.M)) == 10

    # It is complete: a second run restores the weights and the averages.
    again = run(PROGRAM, f"--model_dir={tmp_path}")
    assert re.search(r"^Resuming at step 500 from .*-500$", again, re.M)
    assert " loss " not in again
    assert accuracies(again) == [raw, averaged]


def test_an_average_that_keeps_nothing_is_the_raw_weights():
    raw, averaged = accuracies(run(PROGRAM, "--steps=20", "--average_decay=0"))
    assert raw == averaged


def test_bad_flags_are_refused():
    process = start(PROGRAM, "--average_decay=1.5")
    assert process.returncode != 0
    assert "average_decay" in process.stderr
