import { callsScenario } from './calls-scenario.js';

const loop = {
  about: '4 turns of 16 parallel tools, then an answer of 200 deltas',
  script: '4x16-200',
  smallScript: '2x4-20',
};

/** (b): tools side by side. */
export const parallelTools = callsScenario({ letter: 'b', ...loop });

/** (n): the same in the harsher form. */
export const parallelToolsWhole = callsScenario({
  letter: 'n',
  about: `in one write: ${loop.about}`,
  script: `${loop.script}w`,
  smallScript: `${loop.smallScript}w`,
});
