"""The demonstration behind ``./run demo``: the main job on a real repository."""
