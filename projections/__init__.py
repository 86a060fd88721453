"""Read models: what requests read, made from events and from nothing else.

Each folder is one read model: `projector.py` turns events into rows, `reader.py` reads them.
"""
