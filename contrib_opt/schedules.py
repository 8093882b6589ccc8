"""The learning-rate schedules that LARS is used with."""
