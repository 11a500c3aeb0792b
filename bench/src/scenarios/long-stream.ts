import { readScript } from '../mock/script.js';
import { callsScenario, few } from './calls-scenario.js';

/** (c): one long answer. */
export const longStream = callsScenario({
  letter: 'c',
  about: 'one stream of 20,000 deltas, for each delta',
  script: '0x0-20000',
  smallScript: '0x0-500',
  calls: few,
  per: { name: 'µs', inCall: (script) => readScript(script)?.deltas ?? NaN },
});
