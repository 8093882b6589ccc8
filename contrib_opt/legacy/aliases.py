"""Which names of TensorFlow a program uses, under whatever names it has for them.

    >>> [use.path for use in find(ast.parse("from tensorflow import contrib as c\\n"
    ...                                     "o = c.opt\\n"
    ...                                     "o.LARSOptimizer(0.1)\\n")).uses]
    ['tensorflow.contrib', 'tensorflow.contrib.opt',
     'tensorflow.contrib.opt.LARSOptimizer']

The tree is read in the order in which it would run. Every scope has a table of what
its names stand for: a set of aliases, which is empty for a name that stands for
something else. The branches of an `if` or a `try` are read one by one, each from the
table before it, and a name then stands for all that it may be. The body of a function
is read after what is around it, since it is called later; the names around it are
those of then and of the line that it is in. Everything is read twice:
attributes and globals may be set below the line that uses them.
"""

import ast
import builtins
import collections
import re

from contrib_opt.legacy import names

# How a use is written.
IMPORT = "import"  # import tensorflow.contrib.opt
FROM = "from"  # from tensorflow.contrib import opt
STAR = "star"  # from tensorflow.contrib.opt import *
CHAIN = "chain"  # tf.contrib.opt
VIA_STAR = "via star"  # LARSOptimizer, after a star import
OTHER = "other"  # getattr(tf, "contrib"), "tensorflow.contrib.opt"

Use = collections.namedtuple("Use", "path line column kind node aliases")
Use.__doc__ = """A place of a program that names something of TensorFlow.

path: the canonical name. line, column: as in syntax trees. kind: how it is written.
node: its node in the tree, of a statement for imports.
aliases: what the chain begins with may stand for.
"""

Alias = collections.namedtuple("Alias", "path origin bound_to")
Alias.__doc__ = """What an expression may stand for.

path: its canonical name. bound_to: that of what the expression begins with.
origin: the import statement that bound it, as (line, column, name), or None.
"""

Findings = collections.namedtuple("Findings", "uses loads bound")
Findings.__doc__ = """What `find` found.

uses: the uses, by line. loads: pairs (origin, (line, column)) of every reading of a
name that an import statement brought. bound: all names that the program binds.
"""

_IMPORTERS = {"import_module", "__import__"}
_NOTHING = frozenset()
_NAMES_TENSORFLOW = {"tf", "tensorflow"}
_STRING = re.compile(r"(tensorflow|tf)\.\w+(\.\w+)*")


def find(tree):
    """Finds the watched names in a program.

    Args:
      tree: the syntax tree of a module, from `ast.parse`.

    Returns:
      Findings.
    """
    reader = _Reader(tree)
    reader.read()
    reader.read()
    uses = sorted(reader.uses.values(), key=lambda use: (use.line, use.column))
    return Findings(uses, reader.loads, reader.bound)


class _Scope:
    """A module, class or function, and what its names stand for."""

    def __init__(self, node, parent):
        self.node, self.parent = node, parent
        self.names = {}
        self.globals = set()
        # The class whose method this is, and what the method calls its object.
        self.owner = self.self_name = None

    def around_class(self):
        """This scope, or that in which its class is."""
        scope = self
        while isinstance(scope.node, ast.ClassDef):
            scope = scope.parent
        return scope

    def enclosing(self):
        """The scopes where Python looks for a name, from the inside out."""
        yield self
        scope = self.parent
        while scope:
            # The names of a class are not in sight of its methods.
            if not isinstance(scope.node, ast.ClassDef):
                yield scope
            scope = scope.parent


class _Reader(ast.NodeVisitor):
    def __init__(self, tree):
        self.tree = tree
        # What attributes, and globals that functions set, stand for at any time:
        # the keys are (node of a scope, name), such as (a class, '.slim').
        self.lasting = collections.defaultdict(frozenset)
        self.bound = set()

    def read(self):
        self.uses, self.loads = {}, set()
        self.stars = []
        self.later = []
        self.scope = self.module = _Scope(self.tree, None)
        self.body(self.tree.body)
        while self.later:
            self.scope, function, names_then = self.later.pop(0)
            around = self.scope.around_class()
            # It may be called at once, or when all around it has run.
            names_now, around.names = around.names, _union([names_then, around.names])
            self.function_body(function)
            around.names = names_now

    # ------------------------------------------------------------- statements

    def body(self, statements):
        for statement in statements:
            if not (isinstance(statement, ast.Expr) and _text(statement.value)):
                self.visit(statement)

    def branches(self, *bodies):
        before, after = self.scope.names, []
        for statements in bodies:
            self.scope.names = dict(before)
            self.body(statements)
            after.append(self.scope.names)
        self.scope.names = _union(after)

    def visit_If(self, node):
        self.visit(node.test)
        self.branches(node.body, node.orelse)

    def loop(self, node):
        self.branches(node.body, [])
        self.branches(node.body, [])
        self.body(node.orelse)

    def visit_While(self, node):
        self.visit(node.test)
        self.loop(node)

    def visit_For(self, node):
        self.visit(node.iter)
        self.bind(node.target)
        self.loop(node)

    visit_AsyncFor = visit_For

    def visit_Try(self, node):
        self.branches(node.body, [])
        self.branches(node.orelse, *[[handler] for handler in node.handlers])
        self.body(node.finalbody)

    visit_TryStar = visit_Try

    def visit_ExceptHandler(self, node):
        if node.type:
            self.visit(node.type)
        if node.name:
            self.bind_name(node.name)
        self.body(node.body)

    def visit_Match(self, node):
        self.visit(node.subject)
        self.branches(*([case] for case in node.cases))

    def visit_With(self, node):
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars:
                self.bind(item.optional_vars)
        self.body(node.body)

    visit_AsyncWith = visit_With

    def visit_Global(self, node):
        self.scope.globals.update(node.names)

    def visit_Delete(self, node):
        for target in node.targets:
            self.bind(target)

    def visit_Assign(self, node):
        self.visit(node.value)
        for target in node.targets:
            self.bind(target, node.value)

    def visit_AnnAssign(self, node):
        self.visit(node.annotation)
        if node.value:
            self.visit(node.value)
            self.bind(node.target, node.value)

    def visit_AugAssign(self, node):
        self.visit(node.value)
        self.bind(node.target)

    def visit_NamedExpr(self, node):
        self.visit(node.value)
        self.bind(node.target, node.value)

    # ---------------------------------------------------------------- imports

    def visit_Import(self, node):
        for item in node.names:
            path = names.canonical(item.name)
            self.report(path, node, IMPORT, item.name)
            name, as_name = item.name.split(".")[0], item.asname
            origin = (node.lineno, node.col_offset, item.name)
            if as_name:
                self.bind_name(as_name, [Alias(path, origin, path)])
            else:
                self.bind_name(
                    name, [Alias(names.canonical(name), origin, names.canonical(name))]
                )

    def visit_ImportFrom(self, node):
        module = names.canonical(node.module or "") if not node.level else ""
        for item in node.names:
            if item.name == "*":
                if names.leads_to_watched(module):
                    self.stars.append(module)
                    self.report(module, node, STAR, "*")
                continue
            path = names.canonical(module + "." + item.name)
            if not names.leads_to_watched(path):
                # Many programs have a module that imports TensorFlow for the others.
                known = item.name in _NAMES_TENSORFLOW
                path = "tensorflow" if known else None
            else:
                self.report(path, node, FROM, item.name)
            origin = (node.lineno, node.col_offset, item.name)
            self.bind_name(
                item.asname or item.name, path and [Alias(path, origin, path)]
            )

    # ----------------------------------------------------- functions, classes

    def visit_FunctionDef(self, node):
        for decorator in getattr(node, "decorator_list", []):
            self.visit(decorator)
        arguments = node.args
        for default in arguments.defaults + [d for d in arguments.kw_defaults if d]:
            self.visit(default)
        for argument in _arguments(node):
            if argument.annotation:
                self.visit(argument.annotation)
        if getattr(node, "returns", None):
            self.visit(node.returns)
        if hasattr(node, "name"):
            self.bind_name(node.name)
        names_now = dict(self.scope.around_class().names)
        self.later.append((self.scope, node, names_now))

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def function_body(self, node):
        scope = _Scope(node, self.scope)
        if isinstance(self.scope.node, ast.ClassDef) and _arguments(node):
            scope.owner, scope.self_name = self.scope.node, _arguments(node)[0].arg
        for argument in _arguments(node):
            scope.names[argument.arg] = _NOTHING
        for argument, default in _defaults(node):
            scope.names[argument.arg] = self.assigned(default)
        self.scope = scope
        if isinstance(node, ast.Lambda):
            self.visit(node.body)
        else:
            self.body(node.body)

    def visit_ClassDef(self, node):
        for part in node.decorator_list + node.bases + node.keywords:
            self.visit(part)
        outside, self.scope = self.scope, _Scope(node, self.scope)
        self.body(node.body)
        for name, aliases in self.scope.names.items():
            self.lasting[node, "." + name] |= aliases
        self.scope = outside
        self.bind_name(node.name)

    def comprehension(self, node):
        outside, self.scope = self.scope, _Scope(node, self.scope)
        self.scope.owner, self.scope.self_name = outside.owner, outside.self_name
        # What a comprehension in the body of a class sees is not worth a rule.
        for generator in node.generators:
            self.visit(generator.iter)
            self.bind(generator.target)
            for condition in generator.ifs:
                self.visit(condition)
        for field in ("key", "value", "elt"):
            if hasattr(node, field):
                self.visit(getattr(node, field))
        self.scope = outside

    visit_ListComp = visit_SetComp = visit_DictComp = comprehension
    visit_GeneratorExp = comprehension

    # --------------------------------------------------------------- bindings

    def bind(self, target, value=None):
        """Binds the target of an assignment; value is an expression or None."""
        if isinstance(target, ast.Name):
            self.bind_name(target.id, self.assigned(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = getattr(value, "elts", [])
            if len(values) != len(target.elts):
                values = [None] * len(target.elts)
            for each, its_value in zip(target.elts, values):
                self.bind(each, its_value)
        elif isinstance(target, ast.Attribute):
            self.visit(target.value)
            key = self.attribute_key(target)
            if key:
                self.lasting[key] |= self.assigned(value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value)
        else:
            self.visit(target)

    def bind_name(self, name, aliases=None):
        aliases = frozenset(
            alias for alias in aliases or () if names.leads_to_watched(alias.path)
        )
        self.bound.add(name)
        if name in self.scope.globals:
            self.lasting[self.tree, name] |= aliases
        else:
            self.scope.names[name] = aliases

    def assigned(self, value):
        """The aliases of a name that an expression is assigned to."""
        return frozenset(
            Alias(alias.path, None, alias.path) for alias in self.value(value)
        )

    def attribute_key(self, node):
        """Where `lasting` has an attribute such as `self.slim`, or None."""
        parts = chain(node)
        if not parts:
            return None
        name, rest = parts[0], "." + ".".join(parts[1:])
        for scope in self.scope.enclosing():
            if name == scope.self_name:
                return scope.owner, rest
            if name in scope.names:
                return scope.node, name + rest
        return None

    # ----------------------------------------------------------------- values

    def value(self, node):
        """The aliases that an expression may stand for."""
        if isinstance(node, ast.Name):
            return self.value_of_name(node.id)
        if isinstance(node, ast.Attribute):
            key = self.attribute_key(node)
            own = self.lasting.get(key, _NOTHING) if key else _NOTHING
            return own | self.below(self.value(node.value), node.attr)
        if isinstance(node, ast.IfExp):
            return self.value(node.body) | self.value(node.orelse)
        if isinstance(node, ast.BoolOp):
            return frozenset().union(*map(self.value, node.values))
        if isinstance(node, ast.Call):
            return self.value_of_call(node)
        if isinstance(node, ast.Subscript) and _ends(node.value, {"modules"}):
            # sys.modules['tensorflow.contrib']
            is_index = type(node.slice).__name__ == "Index"  # Before Python 3.9.
            return self.named(node.slice.value if is_index else node.slice)
        if type(node).__name__ == "NamedExpr":
            return self.value(node.value)
        return _NOTHING

    def below(self, aliases, attribute):
        paths = [
            (names.canonical(alias.path + "." + attribute), alias) for alias in aliases
        ]
        return frozenset(
            alias._replace(path=path)
            for path, alias in paths
            if names.leads_to_watched(path)
        )

    def value_of_name(self, name):
        for scope in self.scope.enclosing():
            lasting = self.lasting.get((scope.node, name), _NOTHING)
            if name in scope.names or lasting:
                return scope.names.get(name, _NOTHING) | lasting
        if hasattr(builtins, name):
            return _NOTHING
        if name in _NAMES_TENSORFLOW:
            return frozenset([Alias("tensorflow", None, "tensorflow")])
        for module in self.stars:
            path = names.canonical(module + "." + name)
            reached = names.leads_to_watched(path) and not names.is_watched(module)
            if reached or names.replacement(path):
                return frozenset([Alias(path, None, path)])
        return _NOTHING

    def value_of_call(self, node):
        if _ends(node.func, {"getattr"}) and len(node.args) > 1:
            attribute = _text(node.args[1])
            # A name that the program makes up as it runs leaves the module to report.
            return (
                self.below(self.value(node.args[0]), attribute)
                if attribute
                else _NOTHING
            )
        if _ends(node.func, _IMPORTERS) and node.args:
            found = self.named(node.args[0])
            plain = _ends(node.func, {"__import__"}) and len(node.args) < 4
            root = [alias._replace(path="tensorflow") for alias in found]
            return frozenset(root) if plain else found
        if _ends(node.func, {"LazyLoader"}) and node.args:
            return self.named(node.args[-1])
        return _NOTHING

    def named(self, node):
        """The alias that a string such as 'tensorflow.contrib' is the name of."""
        path = names.canonical(_text(node) or "-")
        return frozenset(
            [Alias(path, None, path)] if names.leads_to_watched(path) else []
        )

    # ------------------------------------------------------------------- uses

    def visit_Name(self, node):
        for alias in self.value_of_name(node.id):
            if alias.origin:
                self.loads.add((alias.origin, (node.lineno, node.col_offset)))
            via_star = [names.canonical(m + "." + node.id) for m in self.stars]
            if not alias.origin and alias.path in via_star:
                self.report(alias.path, node, VIA_STAR)

    def visit_Attribute(self, node):
        start = node
        while isinstance(start, ast.Attribute):
            start = start.value
        self.visit_start(start)
        kind = CHAIN if isinstance(start, ast.Name) else OTHER
        key = self.attribute_key(node)
        if not (key and self.lasting.get(key)):
            self.report_values(node, kind)

    def visit_start(self, start):
        """Visits what a chain begins with, as part of the chain."""
        if isinstance(start, ast.Name):
            for alias in self.value_of_name(start.id):
                if alias.origin:
                    self.loads.add((alias.origin, (start.lineno, start.col_offset)))
        elif isinstance(start, ast.Call) and self.value(start):
            self.visit_arguments(start)
        else:
            self.visit(start)

    def visit_Call(self, node):
        if self.value(node):
            self.report_values(node, OTHER)
            self.visit_arguments(node)
        else:
            self.generic_visit(node)

    def visit_arguments(self, node):
        """Visits those that are not part of the name that a call stands for."""
        for argument in node.args[1 if _ends(node.func, {"getattr"}) else 0 :]:
            if not _text(argument):
                self.visit(argument)

    def report_values(self, node, kind):
        aliases = self.value(node)
        for path in sorted({alias.path for alias in aliases}):
            self.report(path, node, kind, aliases=aliases)

    def visit_Constant(self, node):
        text = _text(node) or ""
        path = re.sub(r"^tf(?=\.)", "tensorflow", text)
        if _STRING.fullmatch(text):
            self.report(names.canonical(path), node, OTHER)

    visit_Str = visit_Constant

    def report(self, path, node, kind, key="", aliases=_NOTHING):
        if names.is_watched(path):
            use = Use(path, node.lineno, node.col_offset, kind, node, aliases)
            self.uses[path, use.line, use.column, key] = use


def _union(tables):
    keys = set().union(*tables)
    return {
        key: frozenset().union(*(table.get(key, _NOTHING) for table in tables))
        for key in keys
    }


def _text(node):
    """The text of a string literal, or None."""
    if type(node).__name__ not in ("Constant", "Str"):
        return None
    # Python 3.7 has Str, with the text in `s`.
    text = node.value if hasattr(node, "value") else node.s
    return text if isinstance(text, str) else None


def chain(node):
    """The list of the names in `a.b.c`, or None for other expressions."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return [node.id] + parts[::-1]


def dotted(node):
    """The text of `a.b.c`."""
    return ".".join(chain(node))


def _ends(function, wanted):
    """Whether a function is called by one of the names, also in a module."""
    return getattr(function, "attr", getattr(function, "id", None)) in wanted


def _arguments(function):
    arguments = function.args
    every = getattr(arguments, "posonlyargs", []) + arguments.args
    every += arguments.kwonlyargs + [arguments.vararg, arguments.kwarg]
    return [argument for argument in every if argument]


def _defaults(function):
    arguments = function.args
    positional = getattr(arguments, "posonlyargs", []) + arguments.args
    first = len(positional) - len(arguments.defaults)
    pairs = list(zip(positional[first:], arguments.defaults))
    pairs += zip(arguments.kwonlyargs, arguments.kw_defaults)
    return [(argument, default) for argument, default in pairs if default]
