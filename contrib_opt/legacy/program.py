"""Runs a script or a module as `__main__`, as python itself would.

What the program sees of itself (`__name__`, `__file__`, `__spec__`, `sys.argv`,
`sys.path[0]`, `sys.modules["__main__"]`) is what plain python sets, and a traceback
begins at the program's first line. Uncaught exceptions are python's to handle, so that
exit status, Ctrl-C, `atexit` and the program's own `sys.excepthook` are as ever.
"""

import importlib.machinery
import importlib.util
import os
import sys
import types

from contrib_opt.legacy import own_modules, sources


class NotFoundError(Exception):
    """There is no such program; `status` is python's exit status in this case."""

    def __init__(self, message, status):
        super().__init__(message)
        self.status = status


def find_script(path):
    """The Program in a file, or in a folder with a `__main__.py`.

    Args:
      path: the file as the user named it.

    Returns:
      A Program.

    Raises:
      NotFoundError: there is no such file, or none in the folder.
      SyntaxError: it is not of this Python.
    """
    if os.path.isdir(path):
        return _find_in_folder(path)
    # Python 3.9 and later say in full where the program is.
    file = os.path.abspath(path) if sys.version_info >= (3, 9) else path
    loader = own_modules.Loader("__main__", file)
    try:
        code = _code(loader, "__main__")
    except OSError as error:
        raise NotFoundError(
            f"can't open file {file!r}: [Errno {error.errno}] {error.strerror}", 2
        ) from error
    first_on_path = os.path.dirname(os.path.realpath(path))
    return Program(code, loader, file, path, first_on_path, spec=None, package=None)


def find_module(name):
    """The Program in a module, or in the `__main__` of a package, as for `python -m`.

    Args:
      name: the dotted name; it is looked for in the working directory first.

    Returns:
      A Program.

    Raises:
      NotFoundError: there is no such module, or it is not made of Python code.
      Exception: whatever a package that it is in raises when it is imported.
    """
    _put_first_on_path(os.getcwd())
    spec = _spec(name)
    if spec.submodule_search_locations is not None:
        spec = _spec(name + ".__main__")
    code = hasattr(spec.loader, "get_code") and _code(spec.loader, spec.name)
    if not code:
        raise NotFoundError(f"No code object available for {name}", 1)
    return Program(
        code, spec.loader, spec.origin, spec.origin, os.getcwd(), spec, spec.parent
    )


class Program:
    """Code, and what python tells a program about itself."""

    def __init__(self, code, loader, file, argv0, first_on_path, spec, package):
        self._code = code
        self._argv0 = argv0
        self._first_on_path = first_on_path
        self._names = {
            "__annotations__": {},
            "__builtins__": sys.modules["builtins"],
            "__cached__": spec and spec.cached,
            "__file__": file,
            "__loader__": loader,
            "__package__": package,
            "__spec__": spec,
        }

    def run(self, arguments):
        """Runs the program. It stays `__main__`, for what runs after its end.

        Args:
          arguments: the arguments of the program, a list.

        Raises:
          Whatever the program raises.
        """
        main = types.ModuleType("__main__")
        vars(main).update(self._names)
        sys.modules["__main__"] = main
        sys.argv[:] = [self._argv0, *arguments]
        _put_first_on_path(self._first_on_path)
        try:
            exec(self._code, vars(main))
        except BaseException:
            _print_tracebacks_from(self._code)
            raise


def _find_in_folder(path):
    folder = os.path.abspath(path) if sys.version_info >= (3, 9) else path
    spec = importlib.machinery.PathFinder.find_spec("__main__", [folder])
    if spec is None:
        raise NotFoundError(f"can't find '__main__' module in {folder!r}", 1)
    if isinstance(spec.loader, importlib.machinery.SourceFileLoader):
        spec.loader = own_modules.Loader("__main__", spec.origin)
    code = _code(spec.loader, "__main__")
    return Program(code, spec.loader, spec.origin, path, folder, spec, "")


def _spec(name):
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        raise NotFoundError(
            f"Error while finding module specification for {name!r} "
            f"(ModuleNotFoundError: {error})",
            1,
        ) from error
    if spec is None:
        raise NotFoundError(f"No module named {name}", 1)
    return spec


def _code(loader, name):
    try:
        return loader.get_code(name)
    except (SyntaxError, ValueError) as error:
        # Where nothing of the program runs there is no traceback, just the message.
        is_python_2 = isinstance(error, SyntaxError) and _is_python_2(error.filename)
        _print_tracebacks_from(None, _PYTHON_2 if is_python_2 else None)
        raise


_PYTHON_2 = "the program is in Python 2, and `2to3 -w` makes it Python 3."


def _is_python_2(file):
    try:
        return any(program.is_python_2 for program in sources.read(file))
    except (sources.Unreadable, TypeError):
        return False


def _put_first_on_path(folder):
    # Python's flag -P (or -I) leaves the path as it is; our own `-m` put one there.
    if getattr(sys.flags, "safe_path", sys.flags.isolated):
        return
    sys.path[0] = folder


def _print_tracebacks_from(code, hint=None):
    """Leaves out of the traceback that python will print what called the program."""
    print_exception = sys.excepthook

    def print_from_program(kind, value, traceback):
        while traceback and traceback.tb_frame.f_code is not code:
            traceback = traceback.tb_next
        if isinstance(value, (AttributeError, ImportError)):
            traceback = _without_last_frames(traceback)
        print_exception(kind, value.with_traceback(traceback), traceback)
        advice = hint or own_modules.hint(value)
        if advice:
            sys.stderr.write(f"\ncontrib_opt: {advice}\n")

    sys.excepthook = print_from_program


def _without_last_frames(traceback):
    """A traceback without the frames at its end in which contrib_opt refuses a name."""
    frames = []
    while traceback:
        frames.append(traceback)
        traceback = traceback.tb_next
    for kept in reversed(range(1, len(frames))):
        file = frames[kept].tb_frame.f_code.co_filename
        if not file.startswith((_HERE, "<frozen importlib")):
            return frames[0]
        frames[kept - 1].tb_next = None
    return frames[0] if frames else None


_HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
