"""Traces: imported only where a collector is configured."""
