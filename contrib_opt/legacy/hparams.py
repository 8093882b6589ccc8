"""`tf.contrib.training.HParams`: named hyperparameters that command lines override.

    hparams = HParams(learning_rate=0.1, layers=[64, 64], activation="relu")
    hparams.parse("learning_rate=0.3,layers=[32]")
    hparams.learning_rate  # 0.3

What differs from TensorFlow 1.15: `parse` sets an element of a list, as in
`layers[1]=32`, where 1.15 took that for an error, and a hyperparameter whose value was
None, which 1.15 could not parse, takes the text as it stands. There are no
protocol buffers: `to_proto` and `hparam_def` are not here.
"""

import json
import numbers
import re

_NAME = re.compile(r"([A-Za-z][\w.]*)\s*(?:\[\s*(\d+)\s*\]\s*)?=\s*")
_VALUE = re.compile(r"(?:\[([^\]]*)\]|([^,\[]*))(?:,\s*|$)")
_BOOLEANS = {"true": True, "True": True, "1": True}
_BOOLEANS.update({"false": False, "False": False, "0": False})


class HParams:
    """Hyperparameters, each an attribute that keeps the type of its first value."""

    def __init__(self, hparam_def=None, model_structure=None, **kwargs):
        """Makes hyperparameters of the keyword arguments.

        Args:
          hparam_def: None.
          model_structure: any object, for get_model_structure().
          **kwargs: names and values. A list has elements of one type, at least one.

        Raises:
          ValueError: a name is a method's, a list is empty, or hparam_def is given.
        """
        if hparam_def is not None:
            raise ValueError(
                "hparam_def is a protocol buffer of tf.contrib, which is gone: give "
                "the hyperparameters by name"
            )
        self._hparam_types = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name, value):
        """Adds a hyperparameter.

        Args:
          name: a name that is new.
          value: its value, whose type it keeps.

        Raises:
          ValueError: the name is taken, or the value is an empty list.
        """
        if getattr(self, name, None) is not None:
            raise ValueError(f"There is a hyperparameter or method {name!r} already")
        is_list = isinstance(value, (list, tuple))
        if is_list and not value:
            raise ValueError(
                f"Hyperparameter {name!r} is an empty list, and so of no known type"
            )
        self._hparam_types[name] = (type(value[0] if is_list else value), is_list)
        setattr(self, name, value)

    def set_hparam(self, name, value):
        """Gives a hyperparameter another value of its type.

        Args:
          name: the name of a hyperparameter.
          value: a value; an integer will do for a float.

        Raises:
          KeyError: there is no such hyperparameter.
          ValueError: the value is of another type.
        """
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list) != is_list:
            raise ValueError(
                f"Hyperparameter {name!r} is {'a list' if is_list else 'no list'}, "
                f"and the value is {value!r}"
            )
        if is_list:
            setattr(self, name, [_as_type(name, kind, element) for element in value])
        else:
            setattr(self, name, _as_type(name, kind, value))

    def del_hparam(self, name):
        """Removes a hyperparameter, if there is one of this name.

        Args:
          name: its name.
        """
        if name in self._hparam_types:
            del self._hparam_types[name]
            delattr(self, name)

    def parse(self, values):
        """Overrides hyperparameters.

        Args:
          values: text such as 'rate=0.1,layers=[64,64],layers[1]=32'.

        Returns:
          self.

        Raises:
          ValueError: the text cannot be read, or has an unknown name.
        """
        kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
        for name, value in parse_values(values, kinds).items():
            self.set_hparam(name, self._with_elements(name, value))
        return self

    def _with_elements(self, name, value):
        if not isinstance(value, dict):
            return value
        old = getattr(self, name)
        if not isinstance(old, (list, tuple)) or max(value) >= len(old):
            raise ValueError(
                f"Hyperparameter {name!r} is {old!r}, and has no element {max(value)}"
            )
        return [value.get(index, element) for index, element in enumerate(old)]

    def override_from_dict(self, values_dict):
        """Overrides hyperparameters with the items of a dict.

        Args:
          values_dict: names and values, as set_hparam takes them.

        Returns:
          self.

        Raises:
          KeyError, ValueError: as set_hparam.
        """
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json):
        """Overrides hyperparameters with the items of a JSON object.

        Args:
          values_json: the text of the object.

        Returns:
          self.

        Raises:
          KeyError, ValueError: as set_hparam.
        """
        return self.override_from_dict(json.loads(values_json))

    def to_json(self, indent=None, separators=None, sort_keys=False):
        """The hyperparameters as a JSON object.

        Args:
          indent, separators, sort_keys: as json.dumps takes them.

        Returns:
          Its text.

        Raises:
          TypeError: a value is of a type that JSON does not have.
        """
        return json.dumps(
            self.values(), indent=indent, separators=separators, sort_keys=sort_keys
        )

    def values(self):
        """A dict of the names and values."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def get(self, key, default=None):
        """The value of a hyperparameter, or `default` where there is none.

        Args:
          key: its name.
          default: None, or a value of its type.

        Raises:
          ValueError: there is one, and `default` is not of its type.
        """
        if key not in self._hparam_types:
            return default
        if default is not None:
            kind, is_list = self._hparam_types[key]
            if isinstance(default, list) != is_list:
                raise ValueError(
                    f"Hyperparameter {key!r} is {getattr(self, key)!r}, and the "
                    f"default is {default!r}"
                )
            for element in default if is_list else [default]:
                _as_type(key, kind, element)
        return getattr(self, key)

    def get_model_structure(self):
        """What the constructor or set_model_structure() was given."""
        return self._model_structure

    def set_model_structure(self, model_structure):
        """Sets what get_model_structure() returns.

        Args:
          model_structure: any object.
        """
        self._model_structure = model_structure

    def __contains__(self, key):
        return key in self._hparam_types

    def __str__(self):
        return ",".join(f"{n}={v}" for n, v in self.values().items())

    def __repr__(self):
        return f"HParams({sorted(self.values().items())})"


def parse_values(values, type_map, ignore_unknown=False):
    """Reads names and values from text.

    Args:
      values: text such as 'rate=0.1,layers=[64,64],sizes[1]=32'.
      type_map: the type of each name: of its elements, where it is a list.
      ignore_unknown: whether names that type_map does not have are passed over.

    Returns:
      A dict of names and values: a list for 'layers', and for 'sizes' the dict
      {1: 32}.

    Raises:
      ValueError: the text cannot be read, or has an unknown name, or a name twice.
    """
    found = {}
    position = 0
    while position < len(values):
        name_match = _NAME.match(values, position)
        value_match = name_match and _VALUE.match(values, name_match.end())
        if not value_match:
            raise ValueError(
                f"Cannot read {values[position:]!r}: write name=value, name=[v1,v2] or "
                "name[index]=value, with commas between them"
            )
        position = value_match.end()
        (name, index), (many, one) = name_match.groups(), value_match.groups()
        if name not in type_map:
            if ignore_unknown:
                continue
            raise ValueError(f"There is no hyperparameter {name!r}")
        _put(found, name, index, many, one, type_map[name])
    return found


def _put(found, name, index, many, one, kind):
    if index is None and name not in found:
        if many is None:
            found[name] = _read(name, kind, one)
        else:
            elements = [text.strip() for text in many.split(",") if text.strip()]
            found[name] = [_read(name, kind, text) for text in elements]
        return
    known = found.setdefault(name, {})
    if index is None or not isinstance(known, dict) or int(index) in known:
        raise ValueError(f"Hyperparameter {name!r} is given twice")
    if one is None:
        raise ValueError(f"An element of {name!r} cannot be a list")
    known[int(index)] = _read(name, kind, one)


def _read(name, kind, text):
    if kind is bool and text in _BOOLEANS:
        return _BOOLEANS[text]
    if kind in (type(None), str):
        return text
    try:
        if kind is bool:
            raise ValueError(text)
        return kind(text)
    except (TypeError, ValueError):
        raise ValueError(
            f"Hyperparameter {name!r} takes {kind.__name__}, and not {text!r}"
        ) from None


def _as_type(name, kind, value):
    """The value as a hyperparameter of a type has it."""
    is_text = isinstance(value, (str, bytes))
    if kind is type(None):
        return value
    if (
        issubclass(kind, (str, bytes)) != is_text
        or issubclass(kind, bool) != isinstance(value, bool)
        or issubclass(kind, numbers.Integral) > isinstance(value, numbers.Integral)
        or issubclass(kind, numbers.Number) > isinstance(value, numbers.Number)
    ):
        raise ValueError(
            f"Hyperparameter {name!r} takes {kind.__name__}, and not {value!r}"
        )
    return kind(value)
