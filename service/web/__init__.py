"""HTTP: the gate, bodies, answers, errors, documentation."""
