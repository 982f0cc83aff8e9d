"""What a model costs on a GPU: bytes, operations, wire, and the least time they take. Pure.

One cost model for whoever must choose: planner, balancers, draft budget, KV tiers, benchmarks. It
knows shapes and machines, and nothing of engines, plugins, files or clocks. Read `kernels`, then
`layout`, `weights`, `exchange`, `decode`, `prefill`.
"""
