"""A model on inputs by ONNX Runtime: the reference of verify.

arguments: MODEL FOLDER FIXED NUMBERED. FOLDER/input_K.npy or .pb, which the emitted program reads too, is read, FOLDER/output_K.npy or .pb
written. FIXED: numbers of inputs that --input-value has made constants, as JSON; NUMBERED: 1 where labels that are text are compiled as
their places.
"""
import sys, json, numpy as np, onnxruntime as ort
model, folder, fixed, numbered = sys.argv[1:3] + [json.loads(sys.argv[3]), sys.argv[4] == '1']
def varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)
def save_text(path, y):  # a TensorProto: dims, data_type STRING, string_data
    words = [w.encode('utf-8', 'surrogateescape') for w in y.ravel()]
    with open(path, 'wb') as f:
        f.write(b''.join(b'\x08' + varint(d) for d in y.shape) + b'\x10\x08')
        f.write(b''.join(b'\x32' + varint(len(w)) + w for w in words))
o = ort.SessionOptions(); o.log_severity_level = 4
o.add_session_config_entry('session.x64quantprecision', '1')  # exact products of bytes without VNNI
s = ort.InferenceSession(model, o, providers=['CPUExecutionProvider'])
def load(stem):
    import os
    if os.path.exists(stem + '.npy'): return np.load(stem + '.npy')
    import onnx
    from onnx import numpy_helper
    t = onnx.TensorProto(); t.ParseFromString(open(stem + '.pb', 'rb').read())
    return numpy_helper.to_array(t)
def constant(i):  # an input of --input-value
    name = i.type[7:-1]  # of tensor(float)
    t = {'float': 'float32', 'double': 'float64'}.get(name, name)
    v = np.array([float(x) if 'float' in t else int(x) for x in fixed[i.name]], t)
    return v.reshape([d if isinstance(d, int) else -1 for d in i.shape])
feed = {i.name: constant(i) for i in s.get_inputs() if i.name in fixed}
for k, i in enumerate([i for i in s.get_inputs() if i.name not in fixed]):
    feed[i.name] = load('%s/input_%d' % (folder, k))
def places(name, y):  # of labels that are text, which is what a compiled model without strings gives
    import onnx
    nodes = [n for n in onnx.load(model, load_external_data=False).graph.node if name in n.output]
    labels = [w.decode() for a in nodes[0].attribute for w in a.strings if a.name == 'classlabels_strings']
    return np.array([labels.index(w) for w in y.ravel()], np.int64).reshape(y.shape)
for k, y in enumerate(s.run(None, feed)):
    if isinstance(y, list):  # of maps: a compiled model gives the values
        y = np.array([list(row.values()) for row in y], np.float32)
    if y.dtype.kind in 'OU' and numbered:
        y = places(s.get_outputs()[k].name, y)
    if y.dtype.kind in 'OU':  # by the standard's rules of .pb files; an array of U would lose zeros at the end
        save_text('%s/output_%d.pb' % (folder, k), y)
    else:
        np.save('%s/output_%d.npy' % (folder, k), y)
