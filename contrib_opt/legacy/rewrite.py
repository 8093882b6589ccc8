"""`python -m contrib_opt scan --rewrite`: old names become imports of contrib_opt.

    -from tensorflow.contrib import opt, slim
    +from tensorflow.contrib import slim
    +import contrib_opt as opt

Imports keep the names that they bind, so what follows them stays as it is. Other uses,
such as `tf.contrib.opt.LARSOptimizer`, are written `contrib_opt.LARSOptimizer`, below
an import of contrib_opt. Only what contrib_opt provides is edited. libcst keeps
the formatting and the comments.
"""

import difflib
import re

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from contrib_opt.legacy import aliases, names, sources


def rewritten(program):
    """The content of the file of a program with contrib_opt for the old names.

    Args:
      program: what `sources.read` returned.

    Returns:
      bytes; those of the file, if there is nothing to do.

    Raises:
      sources.Unreadable: the program is in Python 2, or libcst cannot read it.
    """
    found = aliases.find(program.tree)
    plan = _Plan(program.tree, found)
    if not plan:
        return program.content
    if program.is_python_2:
        raise sources.Unreadable("Python 2; `2to3 -w` makes it Python 3 first")
    return program.edited(lambda code, start: _edited(code, start, plan))


def diff(program, content):
    """The unified diff from the file of a program to another content of it."""
    old, new = program.lines_of(program.content), program.lines_of(content)
    lines = difflib.unified_diff(old, new, program.path, program.path)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


class _Plan:
    """What to change in a program.

    Attributes:
      imports: from (line, column) of an import statement to a dict: for the name of
        each of its aliases that changes, the new name, or None to leave it out. For a
        star import, the names that take the place of '*'.
      chains: from (line, column, text) of a chain such as `tf.contrib.opt.X` to the
        name to put there.
      modules: the modules that the chains need and the program does not import.
      import_after: the line of the statement of a module that their imports go below,
        0 for the top, or None where there are none.
    """

    def __init__(self, tree, found):
        self.imports, self.chains = {}, {}
        self.modules, self.import_after = [], None
        ours = _imports_of_contrib_opt(tree)
        if "contrib_opt" in found.bound and not ours:
            # Somebody else's name.
            return
        self._plan_imports(found.uses)
        self._plan_chains(found.uses)
        self._plan_leftovers(tree, found)
        self.modules = sorted(set(map(_module_of, self.chains.values())) - ours)
        if self.modules:
            line = _import_of_tensorflow(tree)
            self.import_after = line if line < min(self.chains)[0] else 0

    def __bool__(self):
        return bool(self.imports or self.chains)

    def _plan_imports(self, uses):
        stars = [use for use in uses if use.kind == aliases.STAR]
        for use in uses:
            new = names.replacement(use.path)
            if use.kind not in (aliases.IMPORT, aliases.FROM) or not new:
                continue
            for item in use.node.names:
                path = item.name
                if use.kind == aliases.FROM:
                    path = use.node.module + "." + path
                if names.canonical(path) != use.path:
                    continue
                if use.kind == aliases.IMPORT and not item.asname:
                    # It binds `tensorflow`; what is below is a chain.
                    new = "tensorflow"
                self._import(use.node)[item.name] = new
        for star in stars:
            used = {
                names.replacement(use.path)
                for use in uses
                if use.kind == aliases.VIA_STAR
                and names.canonical(star.path + "." + use.path.split(".")[-1])
                == use.path
            }
            if names.replacement(star.path) and used:
                self._import(star.node)["*"] = sorted(used)

    def _import(self, node):
        return self.imports.setdefault((node.lineno, node.col_offset), {})

    def _plan_chains(self, uses):
        for use in uses:
            new = names.replacement(use.path)
            several = len({alias.path for alias in use.aliases}) > 1
            if use.kind != aliases.CHAIN or several or not new:
                continue
            if not all(self._comes_right(alias, new) for alias in use.aliases):
                self.chains[use.line, use.column, aliases.dotted(use.node)] = new

    def _comes_right(self, alias, new):
        """Whether the edit of what a chain begins with makes the chain right."""
        if alias.origin:
            line, column, name = alias.origin
            beginning = self.imports.get((line, column), {}).get(name)
        else:
            beginning = names.replacement(alias.bound_to)
        rest = alias.path[len(alias.bound_to) :]
        return beginning is not None and beginning + rest == new

    def _plan_leftovers(self, tree, found):
        """Leaves out imports of all of contrib that nothing reads any more."""
        chains = {chain[:2] for chain in self.chains}
        for use in found.uses:
            if use.path != names.CONTRIB or use.kind not in ("import", "from"):
                continue
            for item in use.node.names:
                origin = (use.node.lineno, use.node.col_offset, item.name)
                reads = {at for whose, at in found.loads if whose == origin}
                binds_contrib = item.asname or use.kind == aliases.FROM
                if not item.name.endswith("contrib"):
                    continue
                if binds_contrib and reads and reads <= chains:
                    self._import(use.node)[item.name] = None
                elif not binds_contrib:
                    self._import(use.node)[item.name] = "tensorflow"


def _imports_of_contrib_opt(tree):
    """The modules of contrib_opt that a module imports, under their own names."""
    found = {
        item.name
        for node in tree.body
        if type(node).__name__ == "Import"
        for item in node.names
        if item.name.split(".")[0] == "contrib_opt" and not item.asname
    }
    return found | {"contrib_opt"} if found else found


def _module_of(name):
    """The module to import for a name; contrib_opt has all but legacy by itself."""
    is_legacy = name.startswith("contrib_opt.legacy.")
    return name.rpartition(".")[0] if is_legacy else "contrib_opt"


def _import_statements(modules):
    return [cst.parse_statement(f"import {module}\n") for module in modules]


def _import_of_tensorflow(tree):
    """The line of the first statement that imports TensorFlow in a module, or 0."""
    for node in tree.body:
        modules = []
        if type(node).__name__ == "Import":
            modules = [item.name for item in node.names]
        elif type(node).__name__ == "ImportFrom" and not node.level:
            modules = [node.module]
        if any(re.match(r"tensorflow(_core)?(\.|$)", module) for module in modules):
            return node.lineno
    return 0


def _edited(code, start, plan):
    """Code with the edits of the plan; the program has `start` lines before it."""
    try:
        wrapper = MetadataWrapper(cst.parse_module(code))
    except cst.ParserSyntaxError as error:
        raise sources.Unreadable(f"libcst cannot read it: {error.message}") from error
    return wrapper.visit(_Editor(plan, start, code)).code


class _Editor(cst.CSTTransformer):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, plan, start, code):
        super().__init__()
        self.plan, self.start, self.lines = plan, start, code.split("\n")

    def position(self, node):
        """Line and column, as in syntax trees."""
        begin = self.get_metadata(PositionProvider, node).start
        # Those count bytes.
        text = self.lines[begin.line - 1][: begin.column]
        return begin.line + self.start, len(text.encode("utf-8"))

    def leave_Attribute(self, original_node, updated_node):
        text = _dotted(original_node)
        new = text and self.plan.chains.get((*self.position(original_node), text))
        if not new:
            return updated_node
        parentheses = {"lpar": updated_node.lpar, "rpar": updated_node.rpar}
        return cst.parse_expression(new).with_changes(**parentheses)

    def leave_SimpleStatementLine(self, original_node, updated_node):
        statements = self.edited_statements(original_node, updated_node)
        after = []
        if self.position(original_node)[0] == self.plan.import_after:
            after = _import_statements(self.plan.modules)
        return _lines(updated_node, statements, after)

    def leave_SimpleStatementSuite(self, original_node, updated_node):
        statements = self.edited_statements(original_node, updated_node)
        return updated_node.with_changes(body=_on_a_line(statements) or [cst.Pass()])

    def edited_statements(self, original_node, updated_node):
        """A list of statements for each statement of a line."""
        result = []
        for old, new in zip(original_node.body, updated_node.body):
            is_import = isinstance(old, (cst.Import, cst.ImportFrom))
            edits = is_import and self.plan.imports.get(self.position(old))
            result.append(_imports(new, edits) if edits else [new])
        return result

    def leave_Module(self, original_node, updated_node):
        if self.plan.import_after != 0 or self.start:
            return updated_node
        body = list(updated_node.body)
        at = _after_docstring(body)
        body[at:at] = _import_statements(self.plan.modules)
        return updated_node.with_changes(body=body)


def _lines(line, statements, after):
    """A line of statements, with those that took the place of each of them."""
    unchanged = all(
        len(new) == 1 and new[0] is old for old, new in zip(line.body, statements)
    )
    if unchanged:
        return cst.FlattenSentinel([line, *after]) if after else line
    flat = _on_a_line(statements)
    if not flat and not after:
        return cst.RemoveFromParent()
    if len(line.body) > 1:
        lines = [line.with_changes(body=flat)] if flat else []
    else:
        lines = [cst.SimpleStatementLine(body=[each]) for each in flat]
        if lines:
            lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
            comment = line.trailing_whitespace
            lines[-1] = lines[-1].with_changes(trailing_whitespace=comment)
    return cst.FlattenSentinel(lines + after)


def _on_a_line(statements):
    flat = [statement for new in statements for statement in new]
    if flat:
        flat[-1] = flat[-1].with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
    return flat


def _imports(node, edits):
    """The statements that take the place of an import statement."""
    if isinstance(node.names, cst.ImportStar):
        new = sorted(name.split(".")[-1] for name in edits["*"])
        module = edits["*"][0].rpartition(".")[0]
        return _parse(f"from {module} import {', '.join(new)}")
    kept, moved = [], {}
    for item in node.names:
        name = _dotted(item.name)
        if name not in edits:
            kept.append(item)
        elif edits[name]:
            bound = item.evaluated_alias or (
                name if isinstance(node, cst.ImportFrom) else None
            )
            module, text = _import_of(edits[name], bound)
            moved.setdefault(module, []).append(text)
    statements = []
    if kept:
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        statements.append(node.with_changes(names=kept))
    for module, texts in moved.items():
        if module:
            same = isinstance(node, cst.ImportFrom) and len(texts) == len(node.names)
            statements += (
                [_in_place(node, module, texts)]
                if same
                else _parse(f"from {module} import {', '.join(texts)}")
            )
        else:
            statements += [each for text in texts for each in _parse(text)]
    return statements


def _in_place(node, module, texts):
    """A from import of another module, laid out as it was."""
    items = []
    for item, text in zip(node.names, texts):
        (parsed,) = _parse(f"from {module} import {text}")
        items.append(parsed.names[0].with_changes(comma=item.comma))
    return node.with_changes(module=cst.parse_expression(module), names=items)


def _import_of(new, bound):
    """The module to import a name from, '' for none, and the text of the import."""
    module, _, leaf = new.rpartition(".")
    if not module or bound is None:
        return "", f"import {new}" + (
            f" as {bound}" if bound not in (None, new) else ""
        )
    return module, leaf if leaf == bound else f"{leaf} as {bound}"


def _parse(text):
    return list(cst.parse_statement(text + "\n").body)


def _dotted(node):
    """The text of `a.b.c`, or None for other expressions."""
    parts = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    return ".".join([node.value] + parts[::-1])


def _after_docstring(body):
    """Where imports may begin in a module."""
    at = 0
    for i, statement in enumerate(body):
        if not isinstance(statement, cst.SimpleStatementLine):
            break
        first = statement.body[0]
        is_text = isinstance(first, cst.Expr) and isinstance(
            first.value, (cst.SimpleString, cst.ConcatenatedString)
        )
        is_future = (
            isinstance(first, cst.ImportFrom)
            and first.module
            and _dotted(first.module) == "__future__"
        )
        if not is_future and not (is_text and i == 0):
            break
        at = i + 1
    return at
