"""Operations: health, metrics, and the middleware that observes every request."""
