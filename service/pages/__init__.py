"""Pages for people, rendered here: no script is needed, nothing comes from another host."""
