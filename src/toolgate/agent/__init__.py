"""The agent on the server: takes a person's message, asks a model, calls tools through the gate, answers.

`loop.py` is one run from message to answer; `resident.py` keeps many of them, through restarts. A model is anything
that has `answer` (`model.py`): the scripted one needs no key, `provider.py` speaks to every other.
"""
