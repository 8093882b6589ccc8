"""Optimizers that wrap another optimizer, a file each."""
