"""The application: settings, the bootstrap that chooses every part, and its processes."""
