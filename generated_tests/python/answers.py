"""ONNX Runtime's answers, as the files that programs read and compare with."""
import numpy as np
import onnxruntime

onnxruntime.set_default_logger_severity(4)  # warnings say nothing about answers


def session(model, optimised=True):
    """ONNX Runtime's session of a model, a path or bytes, on one thread. Without VNNI its products of bytes saturate in 16 bits,
    unless it is asked for exact ones, which it cannot give for all models."""
    for exact in ("1", "0"):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.x64quantprecision", exact)
        # Products with dequantised weights are of floats: left to itself it would round what they are multiplied with to bytes.
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        if not optimised:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            return onnxruntime.InferenceSession(model if isinstance(model, bytes) else str(model), options, providers=["CPUExecutionProvider"])
        except onnxruntime.capi.onnxruntime_pybind11_state.Fail:
            if exact == "0":
                raise


def answers(model, folder, value_of):
    """Writes the inputs of a model and ONNX Runtime's outputs into the new folder `folder`, and returns that. `value_of`: the
    array for the k'th input, from k and the input's description (name, type, shape)."""
    folder.mkdir(parents=True)
    runtime = session(model)
    feed = {port.name: value_of(k, port) for k, port in enumerate(runtime.get_inputs())}
    for k, value in enumerate(feed.values()):
        np.save(folder / f"input_{k}.npy", value)
    for k, value in enumerate(runtime.run(None, feed)):
        np.save(folder / f"output_{k}.npy", value)
    return folder
