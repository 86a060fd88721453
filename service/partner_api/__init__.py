"""The partner API: authentication, the gate, a module of endpoints for each noun, its docs."""
