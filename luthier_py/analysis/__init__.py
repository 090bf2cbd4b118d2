"""Program to :class:`Facts`: liveness that knows lanes, loads on their way, EXEC, registers. Read-only."""

from luthier_py.analysis.facts import Facts, analyse, live_notes
from luthier_py.analysis.float_mode import PLAIN_MODE, computes_plainly, depends_on_mode
from luthier_py.analysis.regions import OUTSIDE, Flow, Spanning, estimated, going_round, spanning
from luthier_py.analysis.registers import initial_registers, touched
from luthier_py.analysis.steps import Steps, steps_of
from luthier_py.analysis.waits import Pending

__all__ = ["OUTSIDE", "PLAIN_MODE", "Facts", "Flow", "Pending", "Spanning", "Steps", "analyse",
           "computes_plainly", "depends_on_mode", "estimated", "going_round", "initial_registers",
           "live_notes", "spanning", "steps_of", "touched"]
