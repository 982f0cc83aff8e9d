"""The edge: HTTP in, the flow behind it, HTTP out. The only code that knows a server library."""
