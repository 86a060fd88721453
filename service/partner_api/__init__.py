"""The partner API: authentication, the gate, one module of routes a noun, documentation."""
