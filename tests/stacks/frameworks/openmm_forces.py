"""Forces and five steps of 216 ions with OpenMM's HIP platform, beside its Reference platform."""

from functools import partial

import numpy as np
import openmm
from beside import beside
from openmm import unit

SIDE, EACH = 2.4, 6
random = np.random.default_rng(0)
system, force, places = openmm.System(), openmm.NonbondedForce(), []
force.setNonbondedMethod(openmm.NonbondedForce.CutoffPeriodic)
force.setCutoffDistance(0.9)
system.setDefaultPeriodicBoxVectors(*(openmm.Vec3(*row) for row in SIDE * np.eye(3)))
for place in np.ndindex(EACH, EACH, EACH):
    system.addParticle(39.9)
    force.addParticle(0.2 * (-1) ** sum(place), 0.34, 0.996)
    places.append(np.array(place) * SIDE / EACH + random.normal(0, 0.01, 3))
system.addForce(force)


def simulated(platform, properties):
    integrator = openmm.VerletIntegrator(0.002)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName(platform), properties)
    context.setPositions(places)
    forces = context.getState(getForces=True).getForces(asNumpy=True)
    integrator.step(5)
    positions = context.getState(getPositions=True).getPositions(asNumpy=True)
    return forces.value_in_unit(unit.kilojoule_per_mole / unit.nanometer), positions.value_in_unit(unit.nanometer)


for precision, tolerance in (("single", 1e-4), ("mixed", 1e-4), ("double", 1e-6)):  # forces are sums in fixed point
    (here, there), (forces, positions) = beside(
        partial(simulated, "HIP", {"Precision": precision}), partial(simulated, "Reference", {}))
    errors = np.abs(here - forces).max() / np.abs(forces).max(), np.abs(there - positions).max()
    print(precision, *(f"{error:.1e}" for error in errors))
    assert max(errors) < tolerance
print("PASSED")
