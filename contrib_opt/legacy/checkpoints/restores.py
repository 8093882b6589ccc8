"""Which names a restore looks for in a checkpoint, and which variables they go to."""

import tensorflow as tf

from contrib_opt.legacy.checkpoints.names import Variable

_v1 = tf.compat.v1


def of_saver(graph, saver_def):
    """What a Saver looks for, as the operations that it put into the graph say.

    Args:
      graph: the `tf.Graph`.
      saver_def: the Saver's `as_saver_def()`.

    Returns:
      A dict from name to Variable, and a dict from name to a list of the names of the
      variables in the graph that it goes to: several for the parts of a partitioned
      one, and None for what is no variable.
    """
    wanted, targets = {}, {}
    for op in _restoring(graph.get_operation_by_name(saver_def.restore_op_name)):
        _, keys, slices = (tf.get_static_value(tensor) for tensor in op.inputs)
        for key, part, output in zip(keys, slices, op.outputs):
            key, part = key.decode(), part.decode()
            name, shape = _variable_of(output)
            if part:
                # The shape of the whole variable, then what of it is this part.
                shape = tuple(int(size) for size in part.split()[:-1])
            wanted[key] = Variable(shape, output.dtype.base_dtype.name)
            targets.setdefault(key, []).append(name)
    return wanted, targets


def of_assignment_map(assignment_map):
    """What `tf.train.init_from_checkpoint` looks for.

    Args:
      assignment_map: its argument.

    Returns:
      A dict from name to Variable, and a dict from name to that in the graph.
    """
    wanted, targets = {}, {}
    for key, variable in _assignments(assignment_map):
        wanted[key] = Variable(_tuple(variable.shape), variable.dtype.base_dtype.name)
        targets[key] = variable.op.name
    return wanted, targets


def _restoring(op):
    """The RestoreV2 operations that `op` waits for."""
    seen, todo = set(), [op]
    while todo:
        op = todo.pop()
        if op.name in seen:
            continue
        seen.add(op.name)
        if op.type == "RestoreV2":
            yield op
        else:
            todo.extend(op.control_inputs)
            todo.extend(tensor.op for tensor in op.inputs)


def _variable_of(tensor):
    """Name and shape of the variable that a restored tensor goes to, or None each."""
    todo = list(tensor.consumers())
    # Between the two there is little, such as an Identity for each device.
    for _ in range(100):
        if not todo:
            break
        op = todo.pop()
        if op.type == "Assign":
            return op.inputs[0].op.name, _tuple(op.inputs[0].shape)
        if op.type == "AssignVariableOp":
            handle = op.inputs[0].op
            return handle.name, _tuple(tf.TensorShape(handle.get_attr("shape")))
        todo.extend(consumer for out in op.outputs for consumer in out.consumers())
    return None, None


def _tuple(shape):
    return tuple(shape.as_list()) if shape.is_fully_defined() else None


def _assignments(assignment_map):
    """Pairs of a name in the checkpoint and a variable, with scopes written out."""
    variables = _v1.global_variables()
    by_name = {variable.op.name: variable for variable in variables}
    for key, target in getattr(assignment_map, "items", lambda: assignment_map)():
        if not isinstance(target, str):
            yield key, target
        elif target in by_name:
            yield key, by_name[target]
        else:
            scope = target.strip("/") + "/" if target.strip("/") else ""
            inside = [name for name in by_name if name.startswith(scope)]
            for name in inside:
                yield (key + name[len(scope) :]).lstrip("/"), by_name[name]
