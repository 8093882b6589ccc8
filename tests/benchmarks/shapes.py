"""The shapes of variables that bench_speed.py measures on."""


def _resnet50():
    shapes = [(7, 7, 3, 64)]
    channels = 64
    for blocks, width in ((3, 64), (4, 128), (6, 256), (3, 512)):
        for block in range(blocks):
            if block == 0:
                shapes.append((1, 1, channels, 4 * width))  # of the shortcut
            shapes += [
                (1, 1, channels, width),
                (3, 3, width, width),
                (1, 1, width, 4 * width),
            ]
            channels = 4 * width
    normalized = [[kernel, kernel[-1:], kernel[-1:]] for kernel in shapes]
    return sum(normalized, []) + [(2048, 1000), (1000,)]


# 53 convolutions with the gamma and beta of their normalization, and a dense layer:
# 161 variables of 25.6 million elements.
RESNET50 = _resnet50()

# As many variables, with nothing in them: what remains is the cost of a variable.
TINY = [(4,)] * len(RESNET50)

# What the optimizers other than LARS are measured on: 20 variables, 1.1 million
# elements. No dimension makes a Shampoo of TensorFlow 1.15 take seconds.
MIXED = [
    *[(3, 3, 16, 32), (32,), (32,)],
    *[(3, 3, 32, 64), (64,), (64,)],
    *[(3, 3, 64, 128), (128,), (128,)],
    *[(1, 1, 128, 96), (96,), (96,)],
    *[(1536, 256), (256,)],
    *[(2048, 128), (128,)],
    *[(1000, 160), (160,)],
    *[(128, 1024), (1024,)],
]

# A variable that dwarfs the others.
ONE_LARGE = [(2048, 2048), (2048,), (64, 64)]


def equal(elements, variables):
    """So many variables that have `elements` elements together."""
    return [(max(1, elements // variables),)] * variables


def scaled_down(shapes, divisor):
    """`shapes` with the last dimension divided, for quick runs."""
    return [s[:-1] + (max(1, s[-1] // divisor),) if s else s for s in shapes]
