"""The operators of my_ops.tc in NumPy, for tc-emit verify --reference."""

import numpy as np


def Correlate(x, w, dilation=1):
    count = w.shape[1]
    width = x.shape[2] - (count - 1) * dilation
    return sum(x[:, :, k * dilation : k * dilation + width] * w[:, k : k + 1] for k in range(count))


def Smooth(x, decay=0.75):
    y = np.empty_like(x)
    h = np.zeros(x.shape[:-1], np.float32)
    for t in range(x.shape[-1]):
        h = h * np.float32(decay) + x[..., t] * np.float32(1 - decay)
        y[..., t] = h
    return y


def Peak(x, threshold=None):
    if threshold is not None:
        x = np.maximum(x, threshold)
    return x.max(-1), x.argmax(-1)
