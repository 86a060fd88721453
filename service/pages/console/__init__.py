"""The developer console: what a partner's own people do and see."""
