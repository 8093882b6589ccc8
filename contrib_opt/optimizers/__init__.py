"""Update rules: a file an algorithm, named after it."""
