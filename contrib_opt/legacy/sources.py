"""Python programs as the scan reads them: files, folders, notebooks, also of Python 2.

A `Source` has the syntax tree of a program, and says for each line of the tree where
the reader of a report finds it. Nothing is run or imported.
"""

import ast
import bisect
import collections
import importlib
import io
import json
import os
import re
import tokenize
import warnings

_SKIPPED_FOLDERS = {"__pycache__", "node_modules", "site-packages"}
_PYTHON_2_FIXES = (
    "except exec funcattrs has_key long ne numliterals print raise repr throw "
    "tuple_params unicode xreadlines"
).split()
# Magics whose cell is Python; the cells of others hold another language.
_PYTHON_CELL = re.compile(r"%%(time|timeit|capture|prun|memit|mprun)\b")
_MAGIC = re.compile(
    r"(\s*)([%!?]|\w[\w., ]*=\s*[%!](?!=)|.*[^?\s]\?\??\s*$|cd\s+\S+\s*$)"
)
_MASK = "pass  # contrib_opt: "


class Unreadable(Exception):
    """A program that has no syntax tree; says why."""


def find(paths):
    """The Python files and notebooks at the paths, in order and once each.

    Args:
      paths: files, which are taken as they are, and folders, which are searched.
        Hidden folders, and those of installed packages, are left out.

    Returns:
      A list of paths.

    Raises:
      FileNotFoundError: there is nothing at a path.
    """
    found = []
    for path in paths:
        if os.path.isdir(path):
            found += _in_folder(path)
        elif os.path.exists(path):
            found.append(path)
        else:
            raise FileNotFoundError(f"{path}: no such file or folder")
    return list(dict.fromkeys(found))


def _in_folder(top):
    for folder, subfolders, files in os.walk(top):
        subfolders[:] = sorted(
            name
            for name in subfolders
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        )
        for name in sorted(files):
            if name.endswith((".py", ".ipynb")):
                yield os.path.normpath(os.path.join(folder, name))


def read(path):
    """Reads the program in a file.

    Args:
      path: a Python file, or a notebook if it ends in .ipynb.

    Returns:
      A list of the Source, or an empty one for a notebook in another language.

    Raises:
      Unreadable: the file cannot be read, or is not Python.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise Unreadable(error.strerror) from error
    if not path.endswith(".ipynb"):
        return [Program(path, content)]
    return [Notebook(path, content)] if _is_python(_notebook(content)) else []


class Program:
    """A Python file.

    Attributes:
      path: of the file.
      tree: its syntax tree.
      is_python_2: whether it is only Python 2.
    """

    def __init__(self, path, content):
        self.path, self.content = path, content
        self.tree, lines = _parse(_decode(content))
        self.is_python_2 = lines is not None
        self._lines = lines

    def line(self, line):
        """The line in the file, for a line of the tree."""
        return self._lines(line) if self._lines else line

    def where(self, line):
        """What a report calls a line of the tree."""
        return f"{self.path}:{self.line(line)}"

    def place(self, line):
        """The same as a dict for JSON."""
        return {"file": self.path, "line": self.line(line)}

    def edited(self, edit):
        """The content of the file after an edit.

        Args:
          edit: a function of code and the number of lines before it, to code.

        Returns:
          bytes, in the encoding and with the ends of lines of the file.
        """
        encoding = tokenize.detect_encoding(io.BytesIO(self.content).readline)[0]
        text = self.content.decode(encoding)
        return edit(text, 0).encode(encoding)

    def lines_of(self, content):
        """The lines of a content of the file, for a diff."""
        return _decode(content).splitlines(True)


class Notebook:
    """A notebook, as one program of all its cells.

    Attributes:
      path: of the file.
      tree: the syntax tree of all its cells.
      cells: the Cells of Python.
      unreadable: lines about the cells that are not.
      is_python_2: whether the notebook is only Python 2.
    """

    def __init__(self, path, content):
        self.path, self.content = path, content
        self.cells, self.unreadable, text = [], [], ""
        for number, raw in enumerate(_raw_cells(_notebook(content)), start=1):
            cell = Cell(number, mask(_code(raw)), text.count("\n"))
            try:
                _parse(cell.code)
            except Unreadable as error:
                # Half a program, or one in another language.
                self.unreadable.append(f"{path}:cell_{number}: not read: {error}")
                continue
            self.cells.append(cell)
            text += cell.code.rstrip("\n") + "\n"
        self.tree, lines = _parse(text)
        self.is_python_2 = lines is not None
        self._lines = lines or int
        self._starts = [cell.start for cell in self.cells]

    def where(self, line):
        """What a report calls a line of the tree; cells of code count from 1."""
        place = self.place(line)
        return f"{self.path}:cell_{place['cell']}:{place['line']}"

    def place(self, line):
        """The same as a dict for JSON."""
        line = self._lines(line)
        cell = self.cells[bisect.bisect_right(self._starts, line - 1) - 1]
        return {"file": self.path, "cell": cell.number, "line": line - cell.start}

    def edited(self, edit):
        """As for a Program; the JSON keeps its layout."""
        notebook = _notebook(self.content)
        raw_cells = _raw_cells(notebook)
        for cell in self.cells:
            code = edit(cell.code, cell.start)
            if code != cell.code:
                _put_code(raw_cells[cell.number - 1], unmask(code))
        return _json_like(self.content, notebook)

    def lines_of(self, content):
        """The lines of all cells in a content of the file, for a diff."""
        lines = []
        for number, raw in enumerate(_raw_cells(_notebook(content)), start=1):
            lines += [f"# cell_{number}", *_code(raw).split("\n")]
        return [line + "\n" for line in lines]


# number: which of the notebook's cells of code it is, from 1. code: its text, masked.
# start: how many lines of the notebook's program are before it.
Cell = collections.namedtuple("Cell", "number code start")


def _notebook(content):
    try:
        notebook = json.loads(content.decode("utf-8-sig"))
        _raw_cells(notebook)
        return notebook
    except (ValueError, AttributeError) as error:
        raise Unreadable(f"not a notebook: {error}") from error


def _is_python(notebook):
    kernel = notebook.get("metadata", {}).get("kernelspec", {})
    return kernel.get("language", "python").lower().startswith("python")


def _raw_cells(notebook):
    """The dicts of the cells of code."""
    # Before version 4 of the format they were in worksheets.
    sheets = [notebook] + notebook.get("worksheets", [])
    cells = [cell for sheet in sheets for cell in sheet.get("cells", [])]
    return [cell for cell in cells if cell.get("cell_type") == "code"]


def _code(raw):
    return "".join(raw.get("source", raw.get("input", "")))


def _put_code(raw, code):
    key = "source" if "source" in raw else "input"
    raw[key] = code.splitlines(True) if isinstance(raw[key], list) else code


def _json_like(content, notebook):
    """A notebook as JSON, laid out as an earlier content of its file."""
    old = content.decode("utf-8-sig")
    end = old[len(old.rstrip()) :]
    for indent in (1, 2, 4, None):
        for ascii_only in (False, True):
            layout = {"indent": indent, "ensure_ascii": ascii_only}
            if json.dumps(json.loads(old), **layout) + end == old:
                return (json.dumps(notebook, **layout) + end).encode("utf-8")
    # As Jupyter does.
    return json.dumps(notebook, indent=1, ensure_ascii=False).encode("utf-8") + b"\n"


def mask(cell):
    """The code of a cell as plain Python, line by line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(cell)
        return cell
    except (SyntaxError, ValueError):
        pass
    lines = cell.splitlines(True)
    language = re.match(r"\s*%%\w", cell) and not _PYTHON_CELL.match(cell.lstrip())
    masked, continued = [], False
    for line in lines:
        magic = _MAGIC.match(line)
        if language or continued:
            masked.append(_MASK + line)
            continued = line.rstrip().endswith("\\") and not language
        elif magic:
            indent = magic.group(1)
            masked.append(indent + _MASK + line[len(indent) :])
            continued = line.rstrip().endswith("\\")
        else:
            masked.append(line)
    return "".join(masked)


def unmask(code):
    """Undoes `mask`."""
    return code.replace(_MASK, "")


def _decode(content):
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        text = content.decode(encoding)
    except (SyntaxError, UnicodeDecodeError):
        # Python 2 took bytes of any encoding in comments.
        text = content.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _parse(text):
    """The syntax tree, and for Python 2 a function from its lines to those of text."""
    with warnings.catch_warnings():
        # Of escapes such as "\d": it is somebody else's program.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text), None
        except (SyntaxError, ValueError, RecursionError) as error:
            because = error
        try:
            translated, lines = _translate(text)
            return ast.parse(translated), lines
        except ModuleNotFoundError:
            hint = "; if it is Python 2: pip install 'contrib_opt[rewrite]'"
        except Exception:  # Whatever the parser raises, the first error says more.
            hint = ""
    line = getattr(because, "lineno", None)
    at = f" in line {line}" if line else ""
    raise Unreadable(f"{getattr(because, 'msg', because)}{at}{hint}")


def _translate(text):
    """Python 2 as Python 3, and a function from its lines to the lines of text."""
    try:
        refactor = importlib.import_module("lib2to3.refactor")
    except ImportError:
        # Python 3.13 has it no more.
        refactor = importlib.import_module("fissix.refactor")
    package = refactor.__name__.split(".")[0]
    tool = refactor.RefactoringTool(
        [f"{package}.fixes.fix_{name}" for name in _PYTHON_2_FIXES]
    )
    # Python 2 took tabs for eight spaces where Python 3 raises TabError.
    tree = tool.refactor_string(text.expandtabs() + "\n", "<program>")
    outputs, inputs, line = [1], [1], 1
    for leaf in tree.leaves():
        if leaf.value in ("async", "await") and leaf.type == 1:
            leaf.value += "_"
        line += leaf.prefix.count("\n")
        if leaf.lineno and leaf.value.strip():
            outputs.append(line)
            inputs.append(leaf.lineno)
        line += leaf.value.count("\n")

    def line_in_text(line):
        return inputs[bisect.bisect_right(outputs, line) - 1]

    return str(tree), line_in_text
