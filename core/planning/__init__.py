"""Layouts of a model over GPUs, judged by the cost model: which fit, which to take. Pure: values in,
values and text out. Runs nothing, measures nothing.
"""
