"""What contrib_opt uses of TensorFlow beyond its public API.

No other file imports `tensorflow.python`. Every use is inside a function, says
why it is needed, and happens when it is first asked for: importing this module
changes nothing.
"""

import contextlib
import copy
import functools
import importlib
import importlib.util
import sys
import threading
import types

import tensorflow as tf

# ------------------------------------------------------------------ estimator
#
# TensorFlow 2.15 is the last release that ships Estimator. On later ones the
# package tensorflow-estimator 2.15.0 holds all of its code, but not what it took
# from TensorFlow: a place in the table of exported names, the distribute
# coordinator's side of Estimator, three TPU modules, and Keras 2 as `tf.keras`.
# The functions below supply these, to that package alone where that is possible.

_ESTIMATOR_EXTRA = "pip install 'contrib_opt[estimator]'"
_TF_VERSION = tuple(int(part) for part in tf.__version__.split(".")[:2])
_estimator_lock = threading.Lock()
_estimator = None


def has_estimator():
    """Whether Estimator is installed. Loads nothing."""
    return _TF_VERSION < (2, 16) or bool(
        importlib.util.find_spec("tensorflow_estimator")
    )


def require_estimator():
    """Raises ImportError where Estimator is not installed. Loads nothing."""
    if not has_estimator():
        raise ImportError(
            f"TensorFlow {tf.__version__} does not ship Estimator: "
            f"{_ESTIMATOR_EXTRA} brings it"
        )


def estimator_namespace():
    """The module `tf.compat.v1.estimator`, made to load where it no longer is."""
    global _estimator
    with _estimator_lock:
        if _estimator is None:
            require_estimator()
            if _TF_VERSION >= (2, 16):
                namespace = _load_estimator()
            else:
                namespace = tf.compat.v1.estimator
            if _TF_VERSION >= (2, 0):
                _fit_sessions_to_strategies()
            _estimator = namespace
    return _estimator


def _load_estimator():
    api = "tensorflow_estimator.python.estimator.api._v1.estimator"
    if api not in sys.modules:
        # Whoever imported the package before us failed half-way through it.
        for name in [n for n in sys.modules if n.startswith("tensorflow_estimator")]:
            del sys.modules[name]
    _add_estimator_to_export_tables()
    overlay = _tensorflow_with_keras_2()
    absent_tpu = _absent("TPU support", NotImplementedError, _NO_TPU)
    stand_ins = {
        "tensorflow.python.distribute.estimator_training": _estimator_training(),
        "tensorflow.python.tpu.session_support": absent_tpu,
        "tensorflow.python.tpu.tpu_embedding": absent_tpu,
        "tensorflow.python.tpu.tpu_embedding_gradient": absent_tpu,
    }
    stand_ins = {n: m for n, m in stand_ins.items() if not importlib.util.find_spec(n)}
    # Both are undone when the import is over: the package's classes derive from
    # tf.keras classes as it is imported, and nobody else should see either.
    keras, tf.keras = tf.keras, overlay.keras
    sys.modules.update(stand_ins)
    try:
        namespace = importlib.import_module(api)
    except Exception as error:
        raise ImportError(
            "The installed tensorflow-estimator does not load on TensorFlow "
            f"{tf.__version__}; version 2.15.0 does: {_ESTIMATOR_EXTRA} brings it"
        ) from error
    finally:
        tf.keras = keras
        for name in stand_ins:
            del sys.modules[name]
    for name, module in list(sys.modules.items()):
        if name.startswith("tensorflow_estimator.") and vars(module).get("tf") is tf:
            module.tf = overlay
    _refuse_tpu(namespace.tpu)
    return namespace


def _add_estimator_to_export_tables():
    # estimator_export, the decorator on each of the package's public names, files
    # them under an API called "estimator", which 2.16 dropped from this table.
    from tensorflow.python.util import tf_export

    attributes = type(tf_export.API_ATTRS[tf_export.TENSORFLOW_API_NAME])
    tf_export.ESTIMATOR_API_NAME = "estimator"
    for table, suffix in ((tf_export.API_ATTRS, ""), (tf_export.API_ATTRS_V1, "_v1")):
        table.setdefault(
            "estimator",
            attributes(
                "_estimator_api_names" + suffix, "_estimator_api_constants" + suffix
            ),
        )


class _Overlay(types.ModuleType):
    """A module as seen with some of its names replaced."""

    def __init__(self, module, **names):
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name):
        return getattr(self._module, name)


def _tensorflow_with_keras_2():
    """TensorFlow as the canned estimators know it, with Keras 2 for tf.keras."""
    try:
        import tf_keras as v2
        from tf_keras.api._v1 import keras as v1
    except ImportError:
        v1 = v2 = _absent(
            "tf_keras",
            ImportError,
            "The canned estimators and heads are built of Keras 2: "
            f"{_ESTIMATOR_EXTRA} brings it",
        )
    return _Overlay(
        tf,
        keras=v2,
        compat=_Overlay(
            tf.compat,
            v1=_Overlay(tf.compat.v1, keras=v1, layers=v1.__internal__.legacy.layers),
            v2=_Overlay(tf.compat.v2, keras=v2),
        ),
    )


class _Absent(type):
    """The type of things that can be named and derived from but not called."""

    def __getattr__(cls, name):
        if name.startswith("_") and name != "__internal__":
            raise AttributeError(name)
        return _absent(name, cls._error, cls._message)

    def __call__(cls, *args, **kwargs):
        raise cls._error(cls._message)


def _absent(name, error, message):
    return _Absent(name, (), {"_error": error, "_message": message})


_NO_TPU = (
    "contrib_opt.estimator has no TPU support: it runs TPUEstimator with "
    "use_tpu=False, without TPU embeddings"
)


def _refuse_tpu(tpu):
    # Without this TPUEstimator waits long for a TPU, before it fails elsewhere.
    original = tpu.TPUEstimator.__init__

    @functools.wraps(original)
    def init(
        self,
        model_fn=None,
        model_dir=None,
        config=None,
        params=None,
        use_tpu=True,
        *args,
        **kwargs,
    ):
        if use_tpu:
            raise NotImplementedError(_NO_TPU)
        original(self, model_fn, model_dir, config, params, use_tpu, *args, **kwargs)

    def refuse(cls, *args, **kwargs):
        raise NotImplementedError(_NO_TPU)

    tpu.TPUEstimator.__init__ = init
    tpu.experimental.EmbeddingConfigSpec.__new__ = refuse


def _fit_sessions_to_strategies():
    # A session has one CPU device unless its config says otherwise, whatever
    # logical devices TensorFlow 2 was given. Training with a strategy over more of
    # them then waits for ever; this is so on 2.15 as well, and not on 1.15. Every
    # Estimator takes its final RunConfig from the function that this wraps.
    from tensorflow_estimator.python.estimator import estimator

    original = estimator.maybe_overwrite_model_dir_and_session_config

    @functools.wraps(original)
    def with_devices(config, model_dir):
        config = original(config, model_dir)
        if config.cluster_spec:
            return config
        session_config = copy.deepcopy(config.session_config)
        for device_type, count in _devices_of(config):
            given = session_config.device_count.get(device_type)
            if given is not None and given < count:
                raise ValueError(
                    f"The strategy uses {count} {device_type} devices, but "
                    f"session_config's device_count has {given}"
                )
            if device_type == "CPU" and given is None:
                session_config.device_count["CPU"] = count
        if session_config == config.session_config:
            return config
        return config.replace(session_config=session_config)

    estimator.maybe_overwrite_model_dir_and_session_config = with_devices


def _devices_of(config):
    """Pairs of device type and count, where config's strategies need several."""
    counts = {}
    for strategy in (config.train_distribute, config.eval_distribute):
        for device in strategy.extended.worker_devices if strategy else ():
            spec = tf.DeviceSpec.from_string(device)
            count = (spec.device_index or 0) + 1
            counts[spec.device_type] = max(count, counts.get(spec.device_type, 0))
    return [(kind, count) for kind, count in counts.items() if count > 1]


def _estimator_training():
    """The module through which Estimator uses the distribute coordinator."""
    # The coordinator itself is still in TensorFlow, and has no public name.
    from tensorflow.python.distribute import distribute_coordinator as coordinator
    from tensorflow.python.distribute import (
        distribute_coordinator_context,
        multi_worker_util,
    )

    client = coordinator.CoordinatorMode.STANDALONE_CLIENT
    worker = coordinator.CoordinatorMode.INDEPENDENT_WORKER

    def init_run_config(config, tf_config):
        nested = config._experimental_distribute
        for role in ("train", "eval"):
            strategy = nested and getattr(nested, role + "_distribute")
            if strategy and getattr(config, f"_{role}_distribute"):
                raise ValueError(
                    f"{role}_distribute is set in RunConfig and in its "
                    "experimental_distribute: set one"
                )
            if strategy:
                setattr(config, f"_{role}_distribute", strategy)

        cluster = tf.train.ClusterSpec(tf_config.get("cluster", {}))
        remote = config._train_distribute and nested and nested.remote_cluster
        if remote and cluster:
            raise ValueError(
                "The cluster is set in TF_CONFIG and in experimental_distribute."
                "remote_cluster: set one"
            )
        if remote:
            config._distribute_coordinator_mode = client
        elif cluster and config._train_distribute and "master" not in cluster.jobs:
            config._distribute_coordinator_mode = worker
        else:
            config._distribute_coordinator_mode = None
            config._init_distributed_setting_from_environment_var(tf_config)
            config._maybe_overwrite_session_config_for_distributed_training()
            return
        # The coordinator says later which task this is: see task_settings.
        config._init_distributed_setting_from_environment_var({})
        config._cluster_spec = remote or cluster

    def should_run_distribute_coordinator(config):
        mode = getattr(config, "_distribute_coordinator_mode", None)
        return mode in (client, worker) and bool(config.cluster_spec)

    def task_settings(config, context):
        """Tells config which task of the cluster it runs in."""
        cluster, task_type = context.cluster_spec, context.task_type
        config._service = None
        config._task_type, config._task_id = task_type, context.task_id
        config._master = config._evaluation_master = context.master_target
        config._is_chief = context.is_chief
        if task_type == "evaluator":
            # It stands outside of the cluster that trains.
            config._cluster_spec = tf.train.ClusterSpec({})
            config._global_id_in_cluster = None
            config._num_ps_replicas = config._num_worker_replicas = 0
            return
        sizes = {job: cluster.num_tasks(job) for job in cluster.jobs} if cluster else {}
        # RunConfig documents this order: chief, then the others, then ps.
        jobs = sorted(sizes, key=lambda job: (job == "ps", job != "chief", job))
        before = jobs[: jobs.index(task_type)] if task_type in sizes else ()
        config._cluster_spec = cluster
        config._num_ps_replicas = sizes.get("ps", 0)
        config._num_worker_replicas = (
            sizes.get("chief", 0) + sizes.get("worker", 0) if sizes else 1
        )
        config._global_id_in_cluster = sum(sizes[job] for job in before) + (
            context.task_id or 0
        )

    def in_this_task(estimator, role, strategy):
        """A copy of the estimator for the running task, and the task's context."""
        context = distribute_coordinator_context.get_current_worker_context()
        local = copy.deepcopy(estimator)
        setattr(local._config, f"_{role}_distribute", strategy)
        setattr(local, f"_{role}_distribution", strategy)
        # Otherwise the copy's train() would start the coordinator again.
        local._config._distribute_coordinator_mode = None
        task_settings(local._config, context)
        return local, context

    def train_and_evaluate(estimator, train_spec, eval_spec, executor_cls):
        config = estimator.config
        if not config._distribute_coordinator_mode:
            raise ValueError("RunConfig has no distribute coordinator mode")

        def train(strategy):
            local, context = in_this_task(estimator, "train", strategy)
            # A client has a thread and a graph a worker, and hooks name tensors of
            # one graph.
            own = config._distribute_coordinator_mode == worker or context.is_chief
            local.train(
                train_spec.input_fn,
                hooks=list(train_spec.hooks) if own else [],
                max_steps=train_spec.max_steps,
                saving_listeners=train_spec.saving_listeners if own else None,
            )

        def evaluate(strategy):
            local, _ = in_this_task(estimator, "eval", strategy)
            executor_cls(local, train_spec, eval_spec)._start_continuous_evaluation()

        is_client = config._distribute_coordinator_mode == client
        coordinator.run_distribute_coordinator(
            train,
            config.train_distribute,
            evaluate,
            config.eval_distribute,
            mode=config._distribute_coordinator_mode,
            cluster_spec=config.cluster_spec if is_client else None,
            session_config=config.session_config,
        )

    def run_as_client(role):
        def run(estimator, work, hooks):
            config = estimator._config
            strategy = getattr(config, f"_{role}_distribute")
            cluster = multi_worker_util.normalize_cluster_spec(config.cluster_spec)
            if config._distribute_coordinator_mode != client:
                raise ValueError(
                    "In a cluster with a distribution strategy, use "
                    "train_and_evaluate, or name the cluster in "
                    "experimental_distribute.remote_cluster"
                )
            if "evaluator" in cluster.jobs:
                raise ValueError("Only train_and_evaluate takes an 'evaluator' job")
            if strategy.extended.experimental_between_graph:
                raise ValueError(f"{type(strategy).__name__} needs train_and_evaluate")

            def in_task(strategy):
                local, context = in_this_task(estimator, role, strategy)
                result = work(local, strategy, hooks if context.is_chief else [])
                return local if role == "train" else result

            return coordinator.run_distribute_coordinator(
                in_task,
                strategy,
                mode=client,
                cluster_spec=cluster,
                session_config=config.session_config,
            )

        return run

    module = types.ModuleType("tensorflow.python.distribute.estimator_training")
    module.init_run_config = init_run_config
    module.should_run_distribute_coordinator = should_run_distribute_coordinator
    module.train_and_evaluate = train_and_evaluate
    module.estimator_train = run_as_client("train")
    module.estimator_evaluate = run_as_client("eval")
    return module


# ---------------------------------------------------- checkpoints, replicas


def delegating_trackable():
    """The mixin of objects that a checkpoint takes for the optimizer they wrap."""
    # A checkpoint that was saved without loss scaling restores into a
    # LossScaleOptimizer, since both have one structure. What does that is a dozen
    # methods of Trackable, which has no public name; this mixin overrides them all.
    return tf.__internal__.tracking.DelegatingTrackableMixin


@functools.lru_cache(maxsize=None)
def delegating_to_optimizer():
    """The mixin of wrappers that a checkpoint takes for their `_optimizer`."""
    # As above, for every release since 1.15. A wrapper that were an object of its own
    # in the checkpoint would have the same slots as the optimizer in it, and saving
    # refuses that. The class has no public name either.
    (trackable,) = [
        base
        for base in tf.compat.v1.train.Optimizer.__mro__
        if base.__name__ == "Trackable"
    ]

    def delegated(name):
        return property(
            lambda self: getattr(self._optimizer, name),
            lambda self, value: setattr(self._optimizer, name, value),
        )

    # TensorFlow looks whether a class has the first two; no optimizer has.
    own = ("_serialize_to_tensors", "_restore_from_tensors", "__")
    names = [name for name in vars(trackable) if not name.startswith(own)]
    names += ["_create_or_restore_slot_variable", "_restore_slot_variable"]
    return type("Delegating", (), {name: delegated(name) for name in names})


def track(parent, child, name):
    """Makes `child` part of the checkpoints of `parent`, as an attribute would."""
    # An attribute would also show up in the optimizer, under a name that is its own.
    parent._track_trackable(child, name, overwrite=True)


def saved_as(variable, name):
    """`variable` as the dict of a `tf.compat.v1.train.Saver` takes it under `name`."""
    # Saver takes mirrored variables in a list, where they have their own names. This is
    # how it does so; it restores all of the copies.
    if not isinstance(getattr(variable, "values", None), (list, tuple)):
        return variable
    (factory,) = variable._gather_saveables_for_checkpoint().values()
    return factory(name)


def save_as_a_whole(variable):
    """Lets a Saver forget that `variable` belongs to part of a partitioned variable."""
    # What a variable is a part of has no public name.
    if getattr(variable, "_save_slice_info", None) is not None:
        variable._set_save_slice_info(None)


def is_eager(variable):
    """Whether `variable` was made in eager mode and not in a graph."""
    # What a variable says publicly, by raising or not, depends on where it is asked.
    return not getattr(variable, "_in_graph_mode", True)


def in_replica_context():
    """Whether the code of one replica of several runs, and not what joins them."""
    return tf.distribute.has_strategy() and not tf.distribute.in_cross_replica_context()


def can_merge_replicas():
    """Whether the code of a replica may, or must, ask the others to join it."""
    # Most strategies join replicas to update a variable, and that cannot happen inside
    # of tf.cond; others cannot join them. No public name says which one runs.
    if not tf.distribute.has_strategy() or _TF_VERSION < (2, 4):
        return in_replica_context()
    return not tf.__internal__.distribute.strategy_supports_no_merge_call()


@contextlib.contextmanager
def deprecation_silenced():
    """A context in which TensorFlow does not say that what it runs is deprecated."""
    # An experimental policy has a LossScale object, as in TensorFlow 2.8. To make one
    # tells users to take tf.keras's LossScaleOptimizer, which is what is gone.
    from tensorflow.python.util import deprecation

    silence = deprecation.silence()
    silence.__enter__()
    try:
        yield
    finally:
        # With an exception it would leave them off.
        silence.__exit__(None, None, None)


# ---------------------------------------------------------- compiled eager steps


@functools.lru_cache(maxsize=None)
def eager_tensor_type():
    """The type of the Tensors of eager mode; to be asked in eager mode."""
    return type(tf.constant(0))


@functools.lru_cache(maxsize=None)
def resource_variable_type():
    """The type of the variables that `tf.Variable` makes in eager mode."""
    # Its subclasses may be spread over several devices. It has no public name.
    from tensorflow.python.ops import resource_variable_ops

    return resource_variable_ops.ResourceVariable


def layout(tensor):
    """The type and shape of an eager Tensor, as a hashable pair."""
    # `dtype` and `shape` make objects, which costs more than all else that is done
    # with a gradient before it is applied.
    return tensor._datatype_enum(), tensor._shape_tuple()


def runs_functions_eagerly():
    """Whether `tf.config.run_functions_eagerly` says so."""
    # Since TensorFlow 2.3; on 1.15 nobody can ask.
    asked = getattr(tf.config, "functions_run_eagerly", None)
    return asked is not None and asked()


def eager_caller(function):
    """Makes a fast call of a ConcreteFunction.

    Returns:
      A function of a list of eager Tensors, one for each of the inputs, that returns
      the list of the outputs. No GradientTape sees it.
    """
    # To call a ConcreteFunction of some hundred inputs takes longer than to run it:
    # it looks at each input several times. `tf.raw_ops.StatefulPartitionedCall` does
    # not, but what TensorFlow compiled for it stays in memory when the function is
    # gone. A function is run under its own name without either.
    from tensorflow.python.eager import context, execute

    captured = list(function.captured_inputs)
    outputs = len(function.outputs)
    name = function.name
    name = name.decode() if isinstance(name, bytes) else name
    config = context.context().config
    config.allow_soft_placement = True
    # What the graph optimizer finds is not worth its time, and without it a compiled
    # step has the same numbers, to the last bit, as one that is not.
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    attrs = ("executor_type", "", "config_proto", config.SerializeToString())

    def call(inputs):
        inputs = inputs + captured
        return execute.execute(name, outputs, inputs, attrs, context.context())

    # TensorFlow forgets the name with the ConcreteFunction.
    call.function = function
    return call


# -------------------------------------------------------------------- sessions


def session_callable(session, feeds, fetch=None, target=None):
    """A function of the values of `feeds` that runs a `tf.compat.v1.Session`.

    Args:
      session: a Session or InteractiveSession.
      feeds: list of the names of Tensors.
      fetch: the name of the Tensor whose value the function returns, or None.
      target: the name of an operation to run, or None.

    Returns:
      A function whose arguments are NumPy arrays of the Tensors' types and shapes.
    """
    # What `session.make_callable` returns hands its feeds on to `session.run`, which
    # takes three times as long as this, and longer than many a loss.
    from tensorflow.core.protobuf import config_pb2

    options = config_pb2.CallableOptions(feed=feeds)
    options.fetch.extend([] if fetch is None else [fetch])
    options.target.extend([] if target is None else [target])
    run = session._make_callable_from_options(options)
    return run if fetch is None else lambda *values: run(*values)[0]
