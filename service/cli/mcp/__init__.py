"""`claim-ledger mcp`: the sandbox and the reference, by the Model Context Protocol."""
