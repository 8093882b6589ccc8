"""Says more where TensorFlow cannot restore a checkpoint: see errors.py."""
