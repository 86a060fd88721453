"""Operations: health, metrics, and the middleware around every request."""
