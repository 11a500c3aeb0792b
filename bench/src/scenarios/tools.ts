import { callsScenario } from './calls-scenario.js';

/** (a): a loop of eight turns. */
export const tools = callsScenario({
  letter: 'a',
  about: '8 turns with one tool each, then an answer of 200 deltas',
  script: '8x1-200',
  smallScript: '2x1-20',
});
