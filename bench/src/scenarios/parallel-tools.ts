import { callsScenario } from './calls-scenario.js';

/** (b): tools side by side. */
export const parallelTools = callsScenario({
  letter: 'b',
  about: '4 turns of 16 parallel tools, then an answer of 200 deltas',
  script: '4x16-200',
  smallScript: '2x4-20',
});
