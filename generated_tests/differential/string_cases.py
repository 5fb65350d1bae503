"""Tensors of strings: moved, compared, looked up, chosen by classifiers. ONNX Runtime takes strings in UTF-8, so that other bytes
and zeros among them are tried elsewhere (the unit tests of the emitter)."""
import numpy as np

from case import Case, ints, words
from ml_cases import call, forest, text

X = words("cat", "dog", "", "new york", "cat", "Zoë", "日本", "a" * 300)
Y = words("cat", "do", "", "New York", "dog", "Zoë", "日本人", "a" * 299 + "b")
GRID = np.array(["r0c0", "r0c1", "r0c2", "x", "", "r1c2"], object).reshape(2, 3)


def move_cases():
    """Operators that move elements, whatever they are."""
    table = {"wide": np.array([f"w{k}" for k in range(24)], object).reshape(2, 3, 4)}
    for name, body in (("identity", "y = Identity (x)"), ("reshape", "s = Constant <value_ints = [4, 6]> ()\ny = Reshape (x, s)"),
                       ("transpose", "y = Transpose <perm = [2, 0, 1]> (x)"), ("flatten", "y = Flatten <axis = 2> (x)"),
                       ("unsqueeze", "s = Constant <value_ints = [0, 3]> ()\ny = Unsqueeze (x, s)"),
                       ("squeeze", "s = Constant <value_ints = [0]> ()\nu = Unsqueeze (x, s)\nt = Transpose <perm = [1, 0, 3, 2]> (u)\n"
                                   "a = Constant <value_ints = [1]> ()\ny = Squeeze (t, a)"),
                       ("slice", "b = Constant <value_ints = [2, 0]> ()\ne = Constant <value_ints = [-9, 3]> ()\na = Constant <value_ints = [2, 1]> ()\n"
                                 "s = Constant <value_ints = [-1, 2]> ()\ny = Slice (x, b, e, a, s)"),
                       ("concat", "t = Transpose <perm = [0, 2, 1]> (x)\nu = Transpose <perm = [0, 2, 1]> (t)\ny = Concat <axis = 1> (x, u)"),
                       ("expand", "s = Constant <value_ints = [2, 3, 4]> ()\nb = Constant <value_ints = [1]> ()\ne = Constant <value_ints = [2]> ()\n"
                                  "a = Constant <value_ints = [2]> ()\np = Slice (x, b, e, a)\ny = Expand (p, s)"),
                       ("tile", "s = Constant <value_ints = [1, 2, 1]> ()\ny = Tile (x, s)"),
                       ("split", "a, y = Split <axis = 2, num_outputs = 2> (x)")):
        yield Case(f"string_{name}", body, {"x": table["wide"]})
    yield Case("string_gather", "y = Gather <axis = 1> (x, i)", {"x": GRID, "i": ints(2, 0, -1, 1)})
    yield Case("string_gather_constant", "y = Gather (x, i)", {"i": ints(2, 0, -8, 7, 5, 6)}, {"x": X})
    yield Case("string_gather_elements", "y = GatherElements <axis = 1> (x, i)", {"x": GRID, "i": np.array([[1, 1, 0], [-1, 0, 2]])})
    yield Case("string_gather_nd", "y = GatherND (x, i)", {"x": GRID, "i": np.array([[1, 2], [0, -1]])})
    yield Case("string_scatter_elements", "y = ScatterElements <axis = 1> (x, i, u)",
               {"x": GRID, "i": np.array([[2], [0]]), "u": np.array([["p"], ["q"]], object)})
    yield Case("string_scatter_nd", "y = ScatterND (x, i, u)", {"x": GRID, "i": np.array([[1]]), "u": np.array([["p", "q", ""]], object)})
    yield Case("string_where", "y = Where (c, x, z)", {"x": X, "z": Y, "c": np.arange(8) % 3 == 0})
    yield Case("string_where_constant", "y = Where (c, x, z)", {"x": X, "c": np.arange(8) % 3 == 0}, {"z": words("else")})
    yield Case("string_compress", "y = Compress (x, c)", {"x": X, "c": np.arange(8) % 3 == 0}, counted=True)
    yield Case("string_shape", "y = Shape (x)", {"x": GRID})
    yield Case("string_extract", "y = ai.onnx.ml.ArrayFeatureExtractor (x, i)", {"x": GRID, "i": ints(2, 0)})
    yield Case("string_if", "y = If (c) <then_branch = t () => (string[8] a) { a = Identity (x) },\n"
               "else_branch = e () => (string[8] a) { a = Identity (z) }>", {"c": np.array(False), "x": X, "z": Y})


def comparison_cases():
    yield Case("string_equal", "y = Equal (x, z)", {"x": X, "z": Y})
    yield Case("string_equal_broadcast", "y = Equal (x, z)", {"x": GRID, "z": words("x", "r0c1", "")})
    yield Case("string_equal_constant", "e = Equal (x, w)\ny = Cast <to = 1> (e)", {"x": X}, {"w": np.array("cat", object)})
    yield Case("string_chosen", "e = Equal (x, z)\ny = Where (e, x, w)", {"x": X, "z": Y}, {"w": words("differs")})
    yield Case("string_isin", "u = Unsqueeze (x, a)\ne = Equal (u, w)\nf = Cast <to = 1> (e)\ny = ReduceMax <keepdims = 0> (f, l)", {"x": X},
               {"w": words("dog", "日本", "fox", ""), "a": ints(1), "l": ints(1)})


def label_cases():
    keys = ["cat", "", "日本", "dog", "a" * 300]
    yield Case("string_to_int", call(["y"], "LabelEncoder", ["x"], keys_strings=keys, values_int64s=[5, 4, 3, 2, 1], default_int64=-7), {"x": X})
    yield Case("string_to_float", call(["y"], "LabelEncoder", ["x"], keys_strings=keys, values_floats=[.5, 4., 3., 2., 1.], default_float=-7.), {"x": X})
    yield Case("string_to_string", call(["y"], "LabelEncoder", ["x"], keys_strings=keys, values_strings=["p", "q", "", "r", "s"], default_string="?"), {"x": X})
    yield Case("string_from_int", call(["y"], "LabelEncoder", ["x"], keys_int64s=[3, 0, -2], values_strings=["p", "", "r"]), {"x": ints(3, 1, 0, -2, 3)})
    yield Case("string_from_float", call(["y"], "LabelEncoder", ["x"], keys_floats=[3., 0.5], values_strings=["p", "r"]),
               {"x": np.array([3, 0.5, 0], np.float32)})
    # As many keys as a vocabulary has: not each of them is looked at.
    many = [f"word{k * k}" for k in range(1500)]
    asked = [many[0], many[1499], many[700], "word", "word2", "zzz", "", "word16", "word1"]
    yield Case("string_vocabulary", call(["y"], "LabelEncoder", ["x"], keys_strings=many, values_int64s=list(range(1500)), default_int64=-1),
               {"x": words(*asked)})
    yield Case("string_one_hot", call(["y"], "OneHotEncoder", ["x"], cats_strings=["cat", "日本", "fox"]), {"x": X})
    yield Case("string_one_hot_known", call(["y"], "OneHotEncoder", ["x"], cats_strings=["fox", "cat"], zeros=0), {"x": words("cat", "fox", "cat")})
    yield Case("string_one_hot_rows", call(["y"], "OneHotEncoder", ["x"], cats_strings=["x", "", "r1c2", "r0c0"]), {"x": GRID})
    yield Case("string_map_to_int", call(["y"], "CategoryMapper", ["x"], cats_strings=["cat", "dog", ""], cats_int64s=[4, 5, 6], default_int64=9), {"x": X})
    yield Case("string_map_from_int", call(["y"], "CategoryMapper", ["x"], cats_strings=["cat", "dog", ""], cats_int64s=[4, 5, 6], default_string="none"),
               {"x": ints(6, 4, 5, 4, 0)})


def classifier_cases():
    rng = np.random.default_rng(11)
    names = ["setosa", "versicolor", "*/ \\\\ ??/ %s", "Zoë"]
    for classes in (2, 3, 4):
        rows = 1 if classes == 2 else classes
        yield Case(f"string_linear_{classes}",
                   call(["y", "p"], "LinearClassifier", ["x"], coefficients=rng.standard_normal(rows * 4).astype(np.float32),
                        intercepts=rng.standard_normal(rows).astype(np.float32), classlabels_strings=names[:classes], post_transform="LOGISTIC"),
                   {"x": (9, 4)}, outputs=("y", "p"))
    for classes in (2, 3):
        trees = forest(rng, 6, 4, 3, "class", lambda tree: range(classes) if classes > 2 else [1], positive=True)
        yield Case(f"string_trees_{classes}", call(["y", "p"], "TreeEnsembleClassifier", ["x"], classlabels_strings=names[:classes], **trees),
                   {"x": (11, 4)}, outputs=("y", "p"))
    vectors = rng.standard_normal((5, 3)).astype(np.float32)
    yield Case("string_svm", call(["y", "p"], "SVMClassifier", ["x"], classlabels_strings=names[:2], kernel_type="RBF", kernel_params=[0.4, 0., 3.],
                                  coefficients=rng.standard_normal(5).astype(np.float32), support_vectors=vectors.ravel(), vectors_per_class=[2, 3],
                                  rho=[0.1]), {"x": (7, 3)}, outputs=("y", "p"))
    # What follows looks at the label itself.
    yield Case("string_label_used", call(["l", "p"], "LinearClassifier", ["x"], coefficients=rng.standard_normal(8).astype(np.float32),
                                         intercepts=[0., 0.1], classlabels_strings=["yes", "no"]) +
               "\nw = Constant <value_strings = [\"no\"]> ()\ny = Equal (l, w)", {"x": (9, 4)})


def text_cases():
    """Operators on the text itself. ONNX Runtime's StringNormalizer needs a locale that machines may lack, and its StringSplit
    finds no piece in an empty string, where ONNX's definition finds one: ONNX's own suite has both."""
    yield Case("string_join", "y = StringConcat (x, z)", {"x": X, "z": Y})
    yield Case("string_join_rows", "t = StringConcat (x, w)\ny = StringConcat (t, x)", {"x": GRID}, {"w": words("_", "", "é")})
    yield Case("string_join_equal", "t = StringConcat (x, w)\ny = Equal (t, z)", {"x": X, "z": words("catdog", "dog", "dog", "x", "", "", "", "")},
               {"w": words("dog")})
    for name, attributes in (("comma", '<delimiter = ",">'), ("long", '<delimiter = ", ">'), ("once", '<delimiter = ",", maxsplit = 1>'), ("space", "")):
        yield Case(f"string_split_{name}", f"y, z = StringSplit {attributes} (x)",
                   {"x": np.array([["a, b", "ab"], [" p q  r,s ", ",,"]], object)}, outputs=("y", "z"))
    split = np.array(["a,b,c", "ab", ",", "x,y"], object)
    yield Case("string_split_counts", 'p, y = StringSplit <delimiter = ","> (x)', {"x": split})
    yield Case("string_split_counts_of_words", "p, y = StringSplit <maxsplit = 1> (x)", {"x": words(" a b c", "ab", "p q")})
    yield Case("string_split_counts_of_nothing", 'p, n = StringSplit <delimiter = ","> (x)\ny = Concat <axis = 0> (n, z)', {"x": split[:0], "z": ints(3)})
    yield Case("string_unique_places", "u, i, y = Unique (x)", {"x": X})
    yield Case("string_unique_positions", "u, y = Unique (x)", {"x": X})
    for name, pattern in (("words", "[a-zé ]+"), ("dots", ".a.|Z.*"), ("repeated", "(a{3}){100}|(do|ca)[gt]"), ("not", "[^a-z]{2}")):
        yield Case(f"string_regex_{name}", f'y = RegexFullMatch <pattern = "{pattern}"> (x)', {"x": X})
    grams = {"ngram_counts": [0, 3], "ngram_indexes": [0, 1, 2, 3, 4], "pool_strings": ["cat", "dog", "日本", "cat", "dog", "dog", "cat"]}
    listed = ", ".join(f"{key} = {text(value)}" for key, value in grams.items())
    yield Case("string_grams", f'y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 2, max_skip_count = 0, {listed}> (x)',
               {"x": words("cat", "dog", "cat", "", "日本", "dog", "dog")})
    # A weight is that of an n-gram, wherever its count stands.
    listed += ", weights = [0.5, 0.25, 4.0, 3.0, 7.0]"
    for mode in ("IDF", "TFIDF"):
        yield Case(f"string_grams_{mode}", f'y = TfIdfVectorizer <mode = "{mode}", min_gram_length = 1, max_gram_length = 2, max_skip_count = 2, {listed}> (x)'
                   .replace("[0, 1, 2, 3, 4]", "[3, 0, 4, 2, 1]"), {"x": words("cat", "dog", "cat", "", "日本", "dog", "dog")})


def token_cases():
    """Texts that a vocabulary counts, as scikit-learn's converter writes them; and vocabularies of more n-grams than loops are printed for."""
    texts = words("the Cat sat on the cat's mat", "", "a cat, a dog; 2 dogs", "日本 is Zoë, the dog", "?!", "mat " * 40)
    pool = ["2", "a", "cat", "dog", "dogs", "is", "mat", "sat", "the", "zo", "cat", "dog", "the", "cat", "mat", "mat"]
    grams = f"ngram_counts = [0, 10], ngram_indexes = {text([*range(13)])}, pool_strings = {text(pool)}, max_skip_count = 0"
    for name, pattern, least in (("words", "[a-zA-Z0-9_]+", 1), ("long", "[a-z]+", 3), ("letters", ".", 1), ("pairs", "[a-z]{2}", 2), ("wide", "[^ ]+", 2)):
        yield Case(f"tokens_{name}", f'l = StringNormalizer <case_change_action = "LOWER", locale = "C.UTF-8"> (x)\n'
                   f't = com.microsoft.Tokenizer <mark = 0, mincharnum = {least}, pad_value = "#", tokenexp = "{pattern}"> (l)\n f = Flatten (t)\n'
                   f'y = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 2, {grams}> (f)', {"x": texts})
    rng = np.random.default_rng(17)
    vocabulary = [f"w{k}" for k in rng.permutation(150)]
    pairs = [w for k in range(60) for w in (vocabulary[k], vocabulary[(7 * k + 3) % 150])]
    listed = (f"ngram_counts = [0, 150], ngram_indexes = {text(rng.permutation(210))}, pool_strings = {text(vocabulary + pairs)}, "
              f"weights = {text(rng.random(210))}")
    rows = np.array([[f"w{k}" for k in rng.integers(0, 160, 90)] for _ in range(3)], object)
    rows[1, ::2] = vocabulary[3]
    for mode, skip in (("TF", 0), ("TFIDF", 2), ("IDF", 1)):
        yield Case(f"many_grams_{mode.lower()}", f'y = TfIdfVectorizer <mode = "{mode}", min_gram_length = 1, max_gram_length = 2, max_skip_count = {skip}, {listed}> (x)',
                   {"x": rows})
    numbers = f"ngram_counts = [0, 80], ngram_indexes = {text([*range(200)])}, pool_int64s = {text([*range(80), *(v for k in range(60) for v in (k, (3 * k + 1) % 80))])}"
    yield Case("many_grams_of_numbers", f'y = TfIdfVectorizer <mode = "TF", min_gram_length = 2, max_gram_length = 2, max_skip_count = 3, {numbers}> (x)',
               {"x": rng.integers(-2, 90, (4, 50))})


def cast_cases():
    """Numbers as text and text as numbers: what ONNX Runtime writes and reads."""
    rng = np.random.default_rng(11)
    corners = [0.0, -0.0, 1, -2.5, 0.1, 1e10, 123456789.0, 1e-7, np.pi, np.inf, -np.inf, np.nan, 1e20, 1e-5, 1e-4, 99999999.5, 100000, 12345678, 1234567.25, 0.5, 1e38, 1e-38, 1e-45, 99999992]
    spread = np.concatenate([np.array(corners), rng.standard_normal(40) * 10.0 ** rng.integers(-12, 13, 40)])
    for name, dtype, to in (("float", np.float32, 1), ("double", np.float64, 11), ("half", np.float16, 10)):
        with np.errstate(over="ignore"):
            yield Case(f"string_cast_from_{name}", "y = Cast <to = 8> (x)", {"x": spread.astype(dtype)})
    for dtype in (np.int8, np.uint8, np.int32, np.int64):
        limits = np.iinfo(dtype)
        yield Case(f"string_cast_from_{dtype.__name__}", "y = Cast <to = 8> (x)", {"x": np.array([0, 1, 7, 10, 99, 100, limits.max, limits.min, limits.min + 1, 42], dtype)})
    yield Case("string_cast_from_bool", "y = Cast <to = 8> (x)", {"x": np.array([True, False])})
    numbers = words("1.5", "-2e3", " 7", "+4", "inf", "-INF", "nan", "-0", ".5", "5.", "12abc", "1e", "1e+", "1e-3x", "123456789012345678901234567890", "0.000000000000000000000000123",
                    "\t1", "3.4028235e38", "1e-30", "0.1", "Infinity", "1E5", "00012", *(f"{v:.9g}" for v in spread[24:]))
    for name, to in (("float", 1), ("double", 11), ("half", 10)):
        yield Case(f"string_cast_to_{name}", f"n = Cast <to = {to}> (x)\n z = IsNaN (n)\n w = CastLike (o, n)\n y = Where (z, w, n)", {"x": numbers, "o": np.float32([77])}, nothing=True)
    whole = words("12", "-5", "+7", " 8", "12abc", "1.9", "0", "-0", "2147483647", "99", "\n3", "00017")
    for name, to in (("int64", 7), ("int32", 6), ("int8", 3), ("uint8", 2), ("bool", 9)):
        yield Case(f"string_cast_to_{name}", f"y = Cast <to = {to}> (x)", {"x": whole})
    yield Case("string_cast_and_back", "n = Cast <to = 1> (x)\n t = Cast <to = 8> (n)\n y = Cast <to = 1> (t)", {"x": words("1.5", "2.25", "-100000", "1e9")})


def cases():
    return [*cast_cases(), *move_cases(), *comparison_cases(), *label_cases(), *classifier_cases(), *text_cases(), *token_cases()]
