"""ONNX Runtime's answers, as the files that programs read and compare with."""
import numpy as np
import onnxruntime


def answers(model, folder, value_of):
    """Writes the inputs of a model and ONNX Runtime's outputs into the new folder `folder`, and returns that. `value_of`: the
    array for the k'th input, from k and the input's description (name, type, shape)."""
    folder.mkdir(parents=True)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    feed = {port.name: value_of(k, port) for k, port in enumerate(session.get_inputs())}
    for k, value in enumerate(feed.values()):
        np.save(folder / f"input_{k}.npy", value)
    for k, value in enumerate(session.run(None, feed)):
        np.save(folder / f"output_{k}.npy", value)
    return folder
