"""What became of every module of `tf.contrib` after TensorFlow 1.15.

    >>> lookup("opt.LARSOptimizer")
    Successor(status='provided', where='contrib_opt.LARSOptimizer', note='')
    >>> lookup("seq2seq.dynamic_decode").where
    'tensorflow_addons.seq2seq.dynamic_decode'

The tables below map names below `tf.contrib` to where they live today. A name that is
not listed itself has the entry of the module that it is in, so that every name of a
module of contrib has an answer. Loads nothing.
"""

import collections

PROVIDED = "provided"
OTHER_PACKAGE = "other package"
GONE = "gone"

Successor = collections.namedtuple("Successor", "status where note")
Successor.__doc__ = """What became of a name of `tf.contrib`.

status: PROVIDED (by contrib_opt), OTHER_PACKAGE or GONE.
where: the dotted name that takes its place, '' where there is none.
note: how to get it, or what people use instead; '' where there is nothing to say.
"""

CORE = "part of TensorFlow"
SLIM = "pip install tf_slim"
ADDONS = (
    "pip install tensorflow_addons (no longer maintained; needs TensorFlow 2.15 or "
    "earlier)"
)
PROBABILITY = "pip install 'tensorflow_probability[tf]'"
IO = "pip install tensorflow_io"
MODEL_OPTIMIZATION = "pip install tensorflow_model_optimization"
CELLS = "part of TensorFlow; on 2.16 and later: pip install tf_keras"
TENSORBOARD = "pip install tensorboard"

# What takes the same arguments and does the same, so that install() can put it where
# the old name was: (names below tf.contrib, where they are now, how to get them). A
# name with '=' is called something else there.
_SAME = [
    ("autograph", "do_not_convert", "tf.autograph.experimental", CORE),
    ("checkpoint", "CheckpointManager", "tf.compat.v1.train", CORE),
    (
        "cluster_resolver",
        "ClusterResolver GCEClusterResolver KubernetesClusterResolver "
        "SimpleClusterResolver SlurmClusterResolver TFConfigClusterResolver "
        "TPUClusterResolver UnionClusterResolver=UnionResolver",
        "tf.compat.v1.distribute.cluster_resolver",
        CORE,
    ),
    (
        "data",
        "AUTOTUNE Counter CsvDataset Optional "
        "RandomDataset Reducer SqlDataset TFRecordWriter bucket_by_sequence_length "
        "choose_from_datasets copy_to_device "
        "dense_to_sparse_batch enumerate_dataset get_next_as_optional "
        "get_single_element group_by_reducer group_by_window ignore_errors "
        "make_batched_features_dataset make_csv_dataset make_saveable_from_iterator "
        "map_and_batch parallel_interleave parse_example_dataset prefetch_to_device "
        "rejection_resample sample_from_datasets scan shuffle_and_repeat unbatch "
        "unique",
        "tf.compat.v1.data.experimental",
        CORE,
    ),
    (
        "distribute",
        "CrossDeviceOps DistributionStrategy=Strategy OneDeviceStrategy "
        "ReplicaContext get_distribution_strategy=get_strategy get_loss_reduction "
        "get_replica_context get_strategy has_distribution_strategy=has_strategy "
        "has_strategy in_cross_replica_context",
        "tf.compat.v1.distribute",
        CORE,
    ),
    (
        "distributions",
        "Bernoulli Beta Categorical Dirichlet DirichletMultinomial Distribution "
        "Exponential Gamma Laplace Multinomial Normal RegisterKL "
        "ReparameterizationType StudentT Uniform kl_divergence "
        "FULLY_REPARAMETERIZED NOT_REPARAMETERIZED",
        "tf.compat.v1.distributions",
        CORE,
    ),
    ("eager", "Checkpoint", "tf.compat.v1.train", CORE),
    (
        "eager",
        "GradientTape TensorSpec custom_gradient enable_eager_execution "
        "executing_eagerly function in_eager_mode=executing_eagerly "
        "py_func=py_function",
        "tf.compat.v1",
        CORE,
    ),
    (
        "framework",
        "TensorSpec argsort assert_same_float_dtype assert_scalar "
        "convert_to_tensor_or_sparse_tensor is_tensor nest sort",
        "tf.compat.v1",
        CORE,
    ),
    (
        "framework",
        "create_global_step get_global_step get_or_create_global_step",
        "tf.compat.v1.train",
        CORE,
    ),
    ("layers", "safe_embedding_lookup_sparse", "tf.compat.v1.nn", CORE),
    (
        "lookup",
        "KeyValueTensorInitializer TextFileIndex TextFileInitializer",
        "tf.compat.v1.lookup",
        CORE,
    ),
    ("metrics", "confusion_matrix", "tf.compat.v1", CORE),
    (
        "metrics",
        "set_difference set_intersection set_size set_union",
        "tf.compat.v1.sets",
        CORE,
    ),
    ("nn", "conv1d_transpose", "tf.compat.v1.nn", CORE),
    ("proto", "decode_proto encode_proto", "tf.compat.v1.io", CORE),
    (
        "rnn",
        "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell "
        "LSTMStateTuple MultiRNNCell RNNCell ResidualWrapper",
        "tf.compat.v1.nn.rnn_cell",
        CELLS,
    ),
    (
        "rnn",
        "static_bidirectional_rnn static_rnn static_state_saving_rnn",
        "tf.compat.v1.nn",
        CORE,
    ),
    (
        "signal",
        "frame hamming_window hann_window inverse_stft inverse_stft_window_fn "
        "linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms "
        "overlap_and_add stft",
        "tf.compat.v1.signal",
        CORE,
    ),
    (
        "stateless",
        "stateless_multinomial stateless_random_normal=stateless_normal "
        "stateless_random_uniform=stateless_uniform stateless_truncated_normal",
        "tf.compat.v1.random",
        CORE,
    ),
    (
        "tpu",
        "CrossShardOptimizer batch_parallel bfloat16_scope core cross_replica_sum "
        "initialize_system outside_compilation replicate rewrite shard "
        "shutdown_system",
        "tf.compat.v1.tpu",
        CORE,
    ),
    (
        "util",
        "constant_value=get_static_value make_ndarray make_tensor_proto",
        "tf.compat.v1",
        CORE,
    ),
    (
        "framework",
        "VariableDeviceChooser add_arg_scope add_model_variable arg_scope "
        "arg_scoped_arguments assert_global_step assert_or_get_global_step "
        "assign_from_checkpoint assign_from_checkpoint_fn assign_from_values "
        "assign_from_values_fn current_arg_scope filter_variables "
        "get_local_variables get_model_variables get_trainable_variables "
        "get_unique_variable get_variable_full_name get_variables "
        "get_variables_by_name get_variables_by_suffix get_variables_to_restore "
        "global_variable has_arg_scope local_variable model_variable variable",
        "tf_slim",
        SLIM,
    ),
    (
        "layers",
        "GDN OPTIMIZER_CLS_NAMES OPTIMIZER_SUMMARIES RevBlock apply_regularization "
        "avg_pool2d avg_pool3d batch_norm bias_add conv1d conv2d conv2d_in_plane "
        "conv2d_transpose conv3d conv3d_transpose convolution convolution1d "
        "convolution2d convolution2d_in_plane convolution2d_transpose convolution3d "
        "convolution3d_transpose dense_to_sparse dropout elu flatten "
        "fully_connected gdn group_norm images_to_sequence instance_norm "
        "l1_l2_regularizer l1_regularizer l2_regularizer layer_norm "
        "legacy_fully_connected legacy_linear legacy_relu linear max_pool2d "
        "max_pool3d maxout one_hot_encoding optimize_loss recompute_grad relu relu6 "
        "repeat rev_block scale_gradient separable_conv2d separable_convolution2d "
        "sequence_to_images softmax spatial_softmax stack sum_regularizer "
        "summarize_activation summarize_activations summarize_collection "
        "summarize_tensor summarize_tensors unit_norm variance_scaling_initializer "
        "xavier_initializer xavier_initializer_conv2d",
        "tf_slim",
        SLIM,
    ),
    (
        "training",
        "add_gradients_summaries clip_gradient_norms clip_gradient_norms_fn "
        "create_train_op multiply_gradients train",
        "tf_slim.training",
        SLIM,
    ),
    (
        "training",
        "StopAfterNEvalsHook SummaryAtEndHook checkpoints_iterator evaluate_once "
        "evaluate_repeatedly get_or_create_eval_step wait_for_new_checkpoint",
        "tf_slim.evaluation",
        SLIM,
    ),
]

# Modules that a package carries as a whole, for install() as above.
_SAME_MODULES = {
    "framework.python.ops.arg_scope": ("tf_slim.ops.arg_scope", SLIM),
    "framework.python.ops.variables": ("tf_slim.ops.variables", SLIM),
    "layers.python.layers.initializers": ("tf_slim.layers.initializers", SLIM),
    "layers.python.layers.layers": ("tf_slim.layers.layers", SLIM),
    "layers.python.layers.normalization": ("tf_slim.layers.normalization", SLIM),
    "layers.python.layers.optimizers": ("tf_slim.layers.optimizers", SLIM),
    "layers.python.layers.regularizers": ("tf_slim.layers.regularizers", SLIM),
    "layers.python.layers.rev_block_lib": ("tf_slim.layers.rev_block_lib", SLIM),
    "layers.python.layers.summaries": ("tf_slim.layers.summaries", SLIM),
    "layers.python.layers.utils": ("tf_slim.layers.utils", SLIM),
    "losses": ("tf_slim.losses", SLIM),
    "losses.python.losses": ("tf_slim.losses", SLIM),
    "losses.python.metric_learning": ("tf_slim.losses.metric_learning", SLIM),
    "metrics": ("tf_slim.metrics", SLIM),
    "metrics.python.ops": ("tf_slim.metrics", SLIM),
    "slim": ("tf_slim", SLIM),
    "slim.python.slim": ("tf_slim", SLIM),
    "tensorboard": ("tensorboard", TENSORBOARD),
    "training.python.training.evaluation": ("tf_slim.training.evaluation", SLIM),
    "training.python.training.training": ("tf_slim.training.training", SLIM),
}

# Files of tf.contrib whose names are those of the module that they are in.
_SHORT = frozenset(
    """
    data.python.ops distribute.python framework.python.framework
    framework.python.ops layers.python.layers layers.python.ops rnn.python.ops
    rnn.python.ops.core_rnn_cell rnn.python.ops.rnn rnn.python.ops.rnn_cell
    training.python.training tpu.python.tpu tpu.python.tpu.tpu_config
    tpu.python.tpu.tpu_estimator tpu.python.tpu.tpu_optimizer
    """.split()
)

# The files of tf.contrib that programs import, and the ones that are their like here.
_FILES = {
    "learn.python.learn.datasets.mnist": "contrib_opt.legacy.mnist",
    "mixed_precision.python": "contrib_opt.mixed_precision",
    "mixed_precision.python.loss_scale_manager": (
        "contrib_opt.mixed_precision.loss_scale_manager"
    ),
    "mixed_precision.python.loss_scale_optimizer": (
        "contrib_opt.mixed_precision.loss_scale_optimizer"
    ),
    "opt.python": "contrib_opt",
    "opt.python.training": "contrib_opt",
    "training.python.training.hparam": "contrib_opt.legacy.hparams",
}
_FILES.update(
    ("opt.python.training." + old, "contrib_opt." + new)
    for old, new in {
        "adam_gs_optimizer": "optimizers.adam_gs",
        "adamax": "optimizers.adamax",
        "addsign": "optimizers.add_sign",
        "agn_optimizer": "wrappers.agn",
        "drop_stale_gradient_optimizer": "wrappers.drop_stale_gradient",
        "elastic_average_optimizer": "wrappers.elastic_average",
        "external_optimizer": "external",
        "ggt": "optimizers.ggt",
        "lars_optimizer": "optimizers.lars",
        "lazy_adam_gs_optimizer": "optimizers.lazy_adam_gs",
        "lazy_adam_optimizer": "optimizers.lazy_adam",
        "matrix_functions": "optimizers.matrix_functions",
        "model_average_optimizer": "wrappers.model_average",
        "moving_average_optimizer": "wrappers.moving_average",
        "multitask_optimizer_wrapper": "wrappers.multitask",
        "nadam_optimizer": "optimizers.nadam",
        "powersign": "optimizers.power_sign",
        "reg_adagrad_optimizer": "optimizers.reg_adagrad",
        "shampoo": "optimizers.shampoo",
        "sign_decay": "optimizers.sign_decay",
        "variable_clipping_optimizer": "wrappers.variable_clipping",
        "weight_decay_optimizers": "optimizers.weight_decay",
    }.items()
)

_PROVIDED = dict(
    _FILES,
    opt="contrib_opt",
    mixed_precision="contrib_opt.mixed_precision",
    **{
        "learn.datasets.mnist": "contrib_opt.legacy.mnist",
        **{
            "framework." + name: "contrib_opt.legacy.checkpoint_readers." + name
            for name in (
                "init_from_checkpoint list_variables load_checkpoint load_variable"
            ).split()
        },
        "training.HParams": "contrib_opt.legacy.hparams.HParams",
        "training.parse_values": "contrib_opt.legacy.hparams.parse_values",
    },
    **{
        "tpu." + name: "contrib_opt.estimator.tpu." + name
        for name in (
            "InputPipelineConfig RunConfig TPUConfig TPUEstimator TPUEstimatorSpec"
        ).split()
    },
)

# Modules whose names another package has, with other arguments or other behaviour.
_MOVED = {
    "autograph": ("tf.autograph", CORE),
    "bayesflow": ("tensorflow_probability.mcmc", PROBABILITY),
    "bayesflow.monte_carlo": ("tensorflow_probability.monte_carlo", PROBABILITY),
    "boosted_trees": (
        "tensorflow_decision_forests",
        "pip install tensorflow_decision_forests (other models, other arguments)",
    ),
    "bigtable": ("tensorflow_io.bigtable", IO),
    "cloud": ("tensorflow_io", IO),
    "cluster_resolver": ("tf.distribute.cluster_resolver", CORE),
    "constrained_optimization": (
        "tfco",
        "from github.com/google-research/tensorflow_constrained_optimization",
    ),
    "crf": ("tensorflow_addons.text", ADDONS),
    "data": ("tf.data", CORE + ": methods of tf.data.Dataset"),
    "data.CheckpointInputPipelineHook": ("tf.train.Checkpoint", CORE),
    "data.batch_and_drop_remainder": (
        "tf.data.Dataset.batch",
        CORE + ": batch(size, drop_remainder=True)",
    ),
    "data.padded_batch_and_drop_remainder": (
        "tf.data.Dataset.padded_batch",
        CORE + ": padded_batch(..., drop_remainder=True)",
    ),
    "data.sliding_window_batch": ("tf.data.Dataset.window", CORE),
    "data.sloppy_interleave": (
        "tf.data.Dataset.interleave",
        CORE + ": interleave(..., deterministic=False)",
    ),
    "decision_trees": (
        "tensorflow_decision_forests",
        "pip install tensorflow_decision_forests (other models, other arguments)",
    ),
    "deprecated": (
        "tf.compat.v1.summary",
        CORE + ": audio, histogram, image, merge, merge_all and scalar",
    ),
    "distribute": ("tf.distribute", CORE),
    "distributions": ("tensorflow_probability.distributions", PROBABILITY),
    "distributions.bijectors": ("tensorflow_probability.bijectors", PROBABILITY),
    "eager": ("tf", CORE),
    "eager.Variable": ("tf.Variable", CORE),
    "eager.defun": ("tf.function", CORE),
    "eager.implicit_gradients": ("tf.GradientTape", CORE),
    "eager.implicit_value_and_gradients": ("tf.GradientTape", CORE),
    "eager.gradients_function": ("tf.GradientTape", CORE),
    "eager.value_and_gradients_function": ("tf.GradientTape", CORE),
    "eager.num_gpus": (
        "tf.config.list_physical_devices",
        CORE + ": len(tf.config.list_physical_devices('GPU'))",
    ),
    "eager.metrics": ("tf.keras.metrics", CORE),
    "estimator": ("contrib_opt.estimator", "its heads, under other names"),
    "feature_column": ("tf.feature_column", CORE),
    "ffmpeg": ("tensorflow_io.audio", IO),
    "checkpoint": ("tf.train", CORE + ": Checkpoint and CheckpointManager"),
    "framework": ("tf_slim", SLIM),
    "layers": ("tf_slim", SLIM),
    "nn": ("tf.nn", CORE),
    "rnn": ("tf.compat.v1.nn.rnn_cell", CELLS),
    "training": ("tf_slim.training", SLIM),
    "util": ("tf", CORE),
    "framework.py_func": ("tf.compat.v1.py_func", CORE),
    "framework.smart_cond": ("tf.cond", CORE),
    "framework.smart_case": ("tf.case", CORE),
    "framework.smart_constant_value": ("tf.get_static_value", CORE),
    "framework.zero_initializer": ("tf.zeros_initializer", CORE),
    "gan": ("tensorflow_gan", "pip install tensorflow_gan"),
    "hadoop": ("tensorflow_io.hadoop", IO),
    "ignite": ("tensorflow_io.ignite", IO),
    "image": ("tensorflow_addons.image", ADDONS),
    "integrate": ("tensorflow_probability.math.ode", PROBABILITY),
    "kafka": ("tensorflow_io.kafka", IO),
    "keras": ("tf.keras", CORE),
    "kinesis": ("tensorflow_io.kinesis", IO),
    "learn": ("contrib_opt.estimator", "estimators of the same names"),
    "learn.datasets": ("tf.keras.datasets", CORE),
    "learn.python.learn.datasets": ("tf.keras.datasets", CORE),
    "libsvm": ("tensorflow_io", IO),
    "lookup": ("tf.lookup", CORE),
    "lookup.HashTable": ("tf.lookup.StaticHashTable", CORE),
    "lookup.MutableHashTable": ("tf.lookup.experimental.MutableHashTable", CORE),
    "lookup.MutableDenseHashTable": ("tf.lookup.experimental.DenseHashTable", CORE),
    "model_pruning": (
        "tensorflow_model_optimization.sparsity.keras",
        MODEL_OPTIMIZATION,
    ),
    "nn.alpha_dropout": ("tf.keras.layers.AlphaDropout", CORE),
    "nn.nth_element": ("tf.raw_ops.NthElement", CORE),
    "optimizer_v2": (
        "tf.compat.v1.train",
        CORE + ": the optimizers of the same names",
    ),
    "predictor": ("tf.saved_model.load", CORE),
    "quantization": ("tf.quantization", CORE),
    "quantize": (
        "tensorflow_model_optimization.quantization.keras",
        MODEL_OPTIMIZATION,
    ),
    "resampler": ("tensorflow_addons.image", ADDONS),
    "rnn.LayerNormBasicLSTMCell": ("tensorflow_addons.rnn.LayerNormLSTMCell", ADDONS),
    "rnn.NASCell": ("tensorflow_addons.rnn.NASCell", ADDONS),
    "rnn.ConvLSTMCell": ("tf.keras.layers.ConvLSTM2D", CORE),
    "saved_model": ("tf.keras.models", CORE + ": load_model and save_model"),
    "seq2seq": ("tensorflow_addons.seq2seq", ADDONS),
    "signal": ("tf.signal", CORE),
    "solvers": ("tf.linalg.experimental", CORE + ": conjugate_gradient"),
    "sparsemax": ("tensorflow_addons.activations", ADDONS),
    "stateless": ("tf.random", CORE),
    "summary": (
        "tf.summary",
        CORE + ": in graphs too, but as tf.compat.v2.summary in tf.compat.v1",
    ),
    "tensor_forest": (
        "tensorflow_decision_forests",
        "pip install tensorflow_decision_forests (other models, other arguments)",
    ),
    "tensorrt": (
        "tensorflow.experimental.tensorrt",
        CORE + ", for GPUs, up to 2.17",
    ),
    "testing": ("tf.test", CORE),
    "text": ("tensorflow_addons.text", ADDONS),
    "tfprof": ("tf.compat.v1.profiler", CORE),
    "timeseries": ("tensorflow_probability.sts", PROBABILITY),
    "tpu": ("tf.tpu", CORE + ", or tf.distribute.TPUStrategy"),
    "training.bucket_by_sequence_length": (
        "tf.data.Dataset.bucket_by_sequence_length",
        CORE,
    ),
    "training.rejection_sample": ("tf.data.Dataset.rejection_resample", CORE),
}
_MOVED.update(
    ("layers." + name, ("tf.feature_column." + new, CORE))
    for name, new in {
        "bucketized_column": "bucketized_column",
        "crossed_column": "crossed_column",
        "embedding_column": "embedding_column",
        "one_hot_column": "indicator_column",
        "real_valued_column": "numeric_column",
        "shared_embedding_columns": "shared_embeddings",
        "sparse_column_with_hash_bucket": "categorical_column_with_hash_bucket",
        "sparse_column_with_integerized_feature": "categorical_column_with_identity",
        "sparse_column_with_keys": "categorical_column_with_vocabulary_list",
        "sparse_column_with_vocabulary_file": (
            "categorical_column_with_vocabulary_file"
        ),
        "weighted_sparse_column": "weighted_categorical_column",
    }.items()
)

# What people use instead of what nobody carries on.
# Under MODULE.* stand the names of a module that are not listed.
_GONE = {
    "framework.*": "nothing carries this one on",
    "layers.*": "nothing carries this one on",
    "nn.*": "nothing carries this one on",
    "util.*": "nothing carries this one on",
    "all_reduce": "tf.distribute reduces over devices",
    "batching": "tf.nondifferentiable_batch_function is what is left of it",
    "checkpoint.*": "tf.train.Checkpoint tracks lists, dicts and tf.Module by itself",
    "cmake": "it built TensorFlow, and had no names",
    "compiler": "tf.function(jit_compile=True) compiles with XLA",
    "copy_graph": "tf.import_graph_def copies a graph",
    "cudnn_rnn": "tf.keras.layers.LSTM and GRU run on cuDNN where they can",
    "factorization": "scikit-learn has KMeans and GaussianMixture, implicit has ALS",
    "fused_conv": "TensorFlow fuses convolution, bias and activation by itself",
    "graph_editor": "tf.import_graph_def(..., input_map=...) rewires a copied graph",
    "grid_rnn": "write it as a Keras layer",
    "hooks": "tf.compat.v1.train.ProfilerHook does the same",
    "input_pipeline": "tf.data makes input pipelines",
    "kernel_methods": "scikit-learn has RBFSampler; tfp.math.psd_kernels has kernels",
    "labeled_tensor": "xarray labels axes",
    "legacy_seq2seq": "write it with tf.keras.layers; tensorflow_addons.seq2seq has "
    "attention and decoders",
    "linear_optimizer": "scikit-learn has SGDClassifier and LinearSVC",
    "memory_stats": "tf.config.experimental.get_memory_info says how much is in use",
    "meta_graph_transform": "tf.compat.v1.graph_util has what is left of it",
    "nccl": "tf.distribute.MirroredStrategy reduces with NCCL",
    "nearest_neighbor": "faiss or scann find neighbors",
    "periodic_resample": "tf.nn.depth_to_space, or tf.gather with computed indices",
    "receptive_field": "github.com/google-research/receptive_field",
    "recurrent": "tf.keras.layers.RNN",
    "reduce_slice_ops": "tf.math.segment_sum and its like",
    "remote_fused_graph": "LiteRT delegates run on such hardware",
    "rnn.*": "write the cell as a Keras layer; tf.keras.layers.RNN runs it",
    "rpc": "grpc, called from tf.py_function",
    "session_bundle": "tf.saved_model",
    "specs": "write the layers as functions",
    "staging": "tf.data.Dataset.prefetch and tf.data.experimental.prefetch_to_device",
    "stat_summarizer": "tf.profiler",
    "training.*": "tf.data batches, buckets and samples",
}


def _rows():
    """Pairs of a name below tf.contrib and (its Successor, whether it is the same)."""
    for name, where in _PROVIDED.items():
        yield name, (Successor(PROVIDED, where, ""), True)
    for name, (where, note) in _MOVED.items():
        yield name, (Successor(OTHER_PACKAGE, where, note), False)
    for name, note in _GONE.items():
        yield name, (Successor(GONE, "", note), False)
    for name, (where, note) in _SAME_MODULES.items():
        yield name, (Successor(OTHER_PACKAGE, where, note), True)
    for module, names, where, note in _SAME:
        for name in names.split():
            old, _, new = name.partition("=")
            where_now = where + "." + (new or old)
            yield module + "." + old, (Successor(OTHER_PACKAGE, where_now, note), True)


_ROWS = dict(_rows())

MODULES = frozenset(name.partition(".")[0] for name in _ROWS)


def lookup(dotted_name):
    """What became of a name of `tf.contrib`.

    Args:
      dotted_name: the name without `tf.contrib.`, such as 'opt.LARSOptimizer',
        'layers' or 'rnn.python.ops.rnn_cell.LSTMCell'.

    Returns:
      A Successor. A name that contrib never had is GONE.
    """
    return _find(dotted_name)[0]


def is_same(dotted_name):
    """Whether the successor of a name can stand where the name was, unedited.

    Args:
      dotted_name: the name without `tf.contrib.`.

    Returns:
      True where it takes the same arguments and does the same.
    """
    return _find(dotted_name)[1]


def is_namespace(dotted_name):
    """Whether a name is a module or package of which install() has some names."""
    return dotted_name in _NAMESPACES


def same_names(dotted_name):
    """The names directly below one that have a successor that is the same."""
    below = short_name(dotted_name) + "." if dotted_name else ""
    rows = [
        name[len(below) :]
        for name, row in _ROWS.items()
        if row[1] and name.startswith(below)
    ]
    return sorted({name.partition(".")[0] for name in rows})


def short_name(dotted_name):
    """'rnn.LSTMCell' for 'rnn.python.ops.rnn_cell.LSTMCell', and others unchanged."""
    if dotted_name in _SHORT:
        return dotted_name.partition(".")[0]
    module, _, name = dotted_name.rpartition(".")
    if module in _SHORT and dotted_name not in _ROWS:
        return module.partition(".")[0] + "." + name
    return dotted_name


def _find(dotted_name):
    dotted_name = short_name(dotted_name)
    if dotted_name in _ROWS:
        return _ROWS[dotted_name]
    parts = dotted_name.split(".")
    if parts[0] not in MODULES:
        return Successor(GONE, "", "TensorFlow 1.15 has no such module"), False
    for length in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:length])
        if module + ".*" in _ROWS:
            return _ROWS[module + ".*"]
        if module in _ROWS:
            successor, same = _ROWS[module]
            if same:
                where = ".".join([successor.where] + parts[length:])
                successor = successor._replace(where=where)
            return successor, same
    return Successor(GONE, "", "nothing carries it on"), False


def _namespaces():
    names = [name for name, (_, same) in _ROWS.items() if same]
    for name in names + [short + ".x" for short in _SHORT]:
        while "." in name:
            name = name.rpartition(".")[0]
            yield name


_NAMESPACES = frozenset(_namespaces())
