"""Layouts of a model over GPUs, judged by the cost model: which fit, which to take. Pure.

Values in, values and text out. It runs nothing and measures nothing. Read `request`, `fit`,
`points`, `verdicts`, `pools`, `plan`; `report` and `node_file` write.
"""
