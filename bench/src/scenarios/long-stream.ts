import { readScript } from '../mock/script.js';
import { callsScenario, few } from './calls-scenario.js';

const stream = {
  about: 'one stream of 20,000 deltas, for each delta',
  script: '0x0-20000',
  smallScript: '0x0-500',
  calls: few,
  per: { name: 'µs', inCall: (script: string) => readScript(script)?.deltas ?? NaN },
};

/** (c): one long answer. */
export const longStream = callsScenario({ ...stream, letter: 'c' });

/** (o): the same in the harsher form. */
export const longStreamWhole = callsScenario({
  ...stream,
  letter: 'o',
  about: `in one write: ${stream.about}`,
  script: `${stream.script}w`,
  smallScript: `${stream.smallScript}w`,
});
