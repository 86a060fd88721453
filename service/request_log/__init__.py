"""The calls that partners made: noted beside the answers, read in the developer console."""
