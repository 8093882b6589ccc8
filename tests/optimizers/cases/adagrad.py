"""RegAdagrad."""

from optimizers.cases.case import Case


def _random(random):
    return {
        "learning_rate": float(10 ** random.uniform(-2, 0)),
        "initial_accumulator_value": float(10 ** random.uniform(-2, 0)),
    }


def _without_slots(namespace, **kwargs):
    class WithoutSlots(namespace.RegAdagradOptimizer):
        def apply_gradients(self, *args, **kwargs):
            with self.avoid_updating_slots():
                return super().apply_gradients(*args, **kwargs)

    return WithoutSlots(**kwargs)


CASES = [
    Case(
        id="reg_adagrad",
        optimizer="RegAdagradOptimizer",
        kwargs={"learning_rate": 0.3},
        evaluated={"learning_rate": 0.1},
        random=_random,
    ),
    Case(
        id="reg_adagrad_without_slots",
        optimizer="RegAdagradOptimizer",
        build=_without_slots,
        kwargs={"learning_rate": 0.05, "initial_accumulator_value": 0.5},
        # Gradient descent, which does not take just any rate.
        random=lambda random: {"learning_rate": float(random.uniform(0.01, 0.1))},
    ),
]
