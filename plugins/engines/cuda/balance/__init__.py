"""Experts that move between ranks while they serve: counts, tables, weights. The policy is
`policy/experts`."""
