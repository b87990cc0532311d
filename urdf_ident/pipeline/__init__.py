"""What each command does, and the order of its steps; the records that they return are in :mod:`..result`.

Stages of an identification, in order: ``checked_logs`` (logs → conditioned motion), ``estimate`` (friction laws, base
parameters), ``physical`` (possible bodies), ``held_out`` (errors on motion that took no part), ``validate`` (scores on other
logs). ``identify`` runs them; ``inspect`` (with ``describe``, the project file that it writes), ``check``, ``compensate``,
``payload``, ``fleet``, ``simulate`` and ``demo`` are the other commands.
"""
