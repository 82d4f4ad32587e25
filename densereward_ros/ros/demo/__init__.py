"""The demo: a simulated robot or a recording, the reward node and a recovery controller, watched live."""
