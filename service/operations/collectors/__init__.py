"""Collectors: each reads figures for a scrape and sets their gauges."""
