"""The papers' era: names, arguments and return values of THUDM/grb as thin functions over ours.

Nothing of ours imports this package. Import paths of that era (``grb.utils``, ``grb.evaluator.metric``, ...) look names up
here, and a class of ours that is called with arguments it does not know asks :mod:`grb.compat.calls`. Behaviour is ours:
edits are checked, training is inductive where it says so, nothing is printed or pickled. docs/compat.md lists every call.
"""
