"""SQL of rebuilds: shadow tables beside the live ones, comparing them, swapping them."""
