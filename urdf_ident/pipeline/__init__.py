"""What each command does, and the order of its steps.

Stages of an identification, in order: ``checked_logs`` (logs → conditioned motion), ``estimate.estimate_from_data`` (friction
laws, base parameters), ``estimate.physical_parameters`` (possible bodies), ``identify.hold_out`` (errors on motion that took no
part), ``validate`` (scores on other logs). ``identify`` runs them; ``inspect``, ``check``, ``compensate``, ``payload``,
``fleet``, ``simulate`` and ``demo`` are the other commands.
"""
