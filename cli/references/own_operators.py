"""A model on inputs by ONNX's reference evaluator, in which operators of the user's are Python functions.

arguments: FILE.py MODEL FOLDER ROWS. FOLDER/input_K.npy is read, FOLDER/output_K.npy written (.pb where NumPy has no such type); ROWS is a list of [domain, name] as JSON.
"""
import json, os, runpy, sys
try:
    import numpy as np, onnx, onnx.parser
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun
except ImportError as problem:
    sys.exit('python3 has no package %s, which --reference needs: pip install onnx' % problem.name)
file, path, folder, rows = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
functions = runpy.run_path(file)
def operator(domain, name):
    if name not in functions:
        sys.exit('%s has no function %s' % (file, name))
    def run(self, *inputs, **_):
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in self.onnx_node.attribute}
        attributes = {k: v.decode() if isinstance(v, bytes) else v for k, v in attributes.items()}
        y = functions[name](*inputs, **attributes)
        return tuple(map(np.asarray, y)) if isinstance(y, (tuple, list)) else (np.asarray(y),)
    return type(name, (OpRun,), {'op_domain': domain, '_run': run})
if path.endswith('.onnxtxt'):
    with open(path) as f:
        model = onnx.parser.parse_model(f.read())
else:
    model = onnx.load(path)
used = {(n.domain, n.op_type) for n in model.graph.node}
constants = {t.name for t in model.graph.initializer}
names = [i.name for i in model.graph.input if i.name not in constants]
evaluator = ReferenceEvaluator(model, new_ops=[operator(*r) for r in rows if tuple(r) in used])
def load(stem):
    if os.path.exists(stem + '.npy'):
        return np.load(stem + '.npy')
    with open(stem + '.pb', 'rb') as f:
        return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))
feed = {name: load('%s/input_%d' % (folder, k)) for k, name in enumerate(names)}
for k, y in enumerate(evaluator.run(None, feed)):
    if y.dtype.isbuiltin == 1:
        np.save('%s/output_%d.npy' % (folder, k), y)
    else:
        with open('%s/output_%d.pb' % (folder, k), 'wb') as f:
            f.write(onnx.numpy_helper.from_array(y).SerializeToString())
